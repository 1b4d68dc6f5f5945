"""HTTP entrances."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("accounts/", include("chatapp.accounts_urls")),
    path("admin/", admin.site.urls),
]

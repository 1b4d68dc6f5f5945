"""What lies below ``accounts/``: Django's own paths and names, and the sign-in link."""

from django.contrib.auth.views import LogoutView, PasswordChangeDoneView
from django.urls import path

from chatapp.views import accounts

urlpatterns = [
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("password_change/", accounts.PasswordChange.as_view(), name="password_change"),
    path(
        "password_change/done/",
        PasswordChangeDoneView.as_view(),
        name="password_change_done",
    ),
    path("link/<str:uidb64>/<str:token>/", accounts.signin_link, name="signin-link"),
]

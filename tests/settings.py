"""Settings of the tests: the product's own, with values that a deployment would have to give."""

import os

os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "x" * 50)
os.environ.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1,testserver")
os.environ.setdefault("ALLOWED_ORIGINS", "http://localhost:8000,http://testserver")
os.environ.setdefault("DATABASE_URL", "sqlite:///var/tests.sqlite3")
# A developer's own model, log and limits are not the tests'.
for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CHAT_MODEL", "SUMMARY_MODEL", "CONTEXT_WINDOW"):
    os.environ.pop(name, None)

from chatapp.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

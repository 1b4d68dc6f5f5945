"""The settings of the letters. ``STANDALONE_FOLDER`` is where its database may lie."""

import os

SECRET_KEY = "only-for-tests-" + "x" * 50
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "tests.standalone.letters",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
_FILE = os.path.join(os.environ.get("STANDALONE_FOLDER", "."), "letters.sqlite3")
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": _FILE,
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        # A file, since compression works in threads of its own.
        "TEST": {"NAME": _FILE + ".test"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.standalone.urls"
STATIC_URL = "/static/"
USE_TZ = True

INSTALLED_APPS += ["compression"]
COMPRESSION = {"CONVERSATION": "letters.Thread", "SUMMARY": "letters.Digest"}

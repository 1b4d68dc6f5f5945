"""Settings, all from the environment; docs/operations.md lists every variable."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from chatapp import environment
from chatapp.deployment.private_files import keep_private
from compression.planning import defaults

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

DEBUG = environment.boolean("DEBUG")
SECRET_KEY = environment.text("SECRET_KEY")
SECRET_KEY_FALLBACKS = environment.listing("SECRET_KEY_FALLBACKS")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. `make run` makes one for this computer; a deployment needs its "
        "own: 50 or more random characters."
    )
ALLOWED_HOSTS = environment.listing("ALLOWED_HOSTS")
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS is not set: list the host names of this server.")
ALLOWED_ORIGINS = environment.listing("ALLOWED_ORIGINS")
if not ALLOWED_ORIGINS:
    raise ImproperlyConfigured(
        "ALLOWED_ORIGINS is not set: list scheme, host and port, as in https://chat.example.org."
    )

INSTALLED_APPS = [
    "daphne",
    "chatapp.apps.ReviewConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "chatapp.deployment.static_files.StaticFilesConfig",
    "channels",
    "django_htmx",
    "csp",
    "compression",
    "chatapp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "chatapp.middleware.no_store",
    # Before anything that checks the Host, after what sets headers.
    "chatapp.views.health.probes",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # Last, so that the others set the headers of its answers.
    "chatapp.views.failures.refusals",
]
ROOT_URLCONF = "chatapp.urls"
ASGI_APPLICATION = "chatapp.asgi.application"
TEMPLATES = [
    {
        "NAME": "django",
        "BACKEND": "chatapp.rendering.template_backend.Templates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "chatapp.template_loader.Loader",
                        # The templates of apps, such as compression's, which are for any host.
                        "django.template.loaders.app_directories.Loader",
                    ],
                ),
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

_database = environment.database("DATABASE_URL", "sqlite:///var/palimpsest.sqlite3")
DATABASE_FILE = None
if _database["ENGINE"] == "django.db.backends.sqlite3":
    DATABASE_FILE = BASE_DIR / str(_database["NAME"])
# Here, because every entry point reads the settings before it writes anything.
keep_private(VAR_DIR, DATABASE_FILE)
if DATABASE_FILE is not None:
    _database["NAME"] = str(DATABASE_FILE)
    environment.folder("DATABASE_URL", DATABASE_FILE.parent)
    # A file, because units of work run in several threads.
    _database["TEST"] = {"NAME": str(_database["NAME"]) + ".test"}
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = environment.text("REDIS_URL")
# Deployments may share a Redis, whose channels ignore its databases. With a prefix of its own, none
# hears another's conversations or counts its sign-ins.
REDIS_PREFIX = "palimpsest-" + hashlib.sha256(f"redis {SECRET_KEY}".encode()).hexdigest()[:16]
# Detects within half a minute that Redis's host is gone; a process that only listens would
# otherwise hear nothing for hours.
REDIS_CONNECTION = {
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): seconds
        for name, seconds in {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}.items()
        if hasattr(socket, name)
    },
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [{"address": REDIS_URL, **REDIS_CONNECTION}],
            "prefix": REDIS_PREFIX,
        },
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# Counts attempts to sign in, for all processes if there can be several.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": REDIS_PREFIX,
    }
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # At its limit this cache drops what was used longest ago.
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
# Times in the admin name their zone; a script converts them to the reader's.
FORMAT_MODULE_PATH = "chatapp.formats"

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatapp.deployment.static_files.StaticFilesStorage"},
}

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
PASSWORD_HASHERS = ["chatapp.accounts.hashing.PatientPasswordHasher"]
PASSWORD_RESET_TIMEOUT = 15 * 60  # seconds; also the lifetime of a sign-in link

# TLS is used if all origins use it; `make run` serves only this computer, without TLS.
SECURE = all(origin.startswith("https://") for origin in ALLOWED_ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = ALLOWED_ORIGINS
SECURE_SSL_REDIRECT = SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
# These affect other hosts of the domain, and browsers for years, so the operator decides.
SECURE_HSTS_INCLUDE_SUBDOMAINS = environment.boolean("HSTS_INCLUDE_SUBDOMAINS")
SECURE_HSTS_PRELOAD = environment.boolean("HSTS_PRELOAD")
# W005 and W021 ask for both.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "chatapp.views.failures.csrf_failure"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
# Files to be imported, deleted when their import ends.
IMPORT_DIR = str(
    environment.folder("IMPORT_DIR", Path(environment.text("IMPORT_DIR", str(VAR_DIR / "imports"))))
)
FILE_UPLOAD_TEMP_DIR = IMPORT_DIR
# Larger than any message in form encoding, and small enough to do no harm. Only imports may be
# larger: chatapp.deployment.body_limits.
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

OPENAI_BASE_URL = environment.text("OPENAI_BASE_URL")
OPENAI_API_KEY = environment.text("OPENAI_API_KEY")
CHAT_MODEL = environment.text("CHAT_MODEL")
SUMMARY_MODEL = environment.text("SUMMARY_MODEL")
# A server of its own for summaries; it never gets the key above.
SUMMARY_BASE_URL = environment.text("SUMMARY_BASE_URL")
SUMMARY_API_KEY = environment.text("SUMMARY_API_KEY")
CONTEXT_WINDOW = environment.integer("CONTEXT_WINDOW", 0) or None
MESSAGE_MAX_LENGTH = environment.integer("MESSAGE_MAX_LENGTH", 200_000, least=1)
# A process writes about a hundred replies at once. One person cannot take them all, but can work in
# several tabs without noticing the limit.
REPLIES_PER_USER = environment.integer("REPLIES_PER_USER", 10, least=1)
# 0: no limit, and nothing is counted.
DAILY_TOKENS_PER_USER = environment.integer("DAILY_TOKENS_PER_USER", 0)
DAILY_COST_PER_USER = environment.amount("DAILY_COST_PER_USER")
# Requests of one turn that offer tools; then one that offers none, so that the model answers.
TOOL_ROUNDS = environment.integer("TOOL_ROUNDS", 8)
CURRENT_TIME_TOOL = environment.boolean("CURRENT_TIME_TOOL")
AUTOMATIC_TITLES = environment.boolean("AUTOMATIC_TITLES", True)
# Hosts that the built-in tool may fetch pages from; empty: there is no such tool.
FETCH_HOSTS = environment.listing("FETCH_HOSTS")
FETCH_PRIVATE_ADDRESSES = environment.boolean("FETCH_PRIVATE_ADDRESSES")
ACTIVITY_LOG_DIR = environment.text_or_off("ACTIVITY_LOG_DIR", str(VAR_DIR / "activity"))
ACTIVITY_LOG_MAX_BYTES = environment.integer("ACTIVITY_LOG_MAX_BYTES", 10_000_000, least=1)
# Without it the log has figures and errors, but nothing that people or models wrote.
ACTIVITY_LOG_CONTENT = environment.boolean("ACTIVITY_LOG_CONTENT", True)
ACTIVITY_LOG_DAYS = environment.integer("ACTIVITY_LOG_DAYS", 30, least=1)
PORT = environment.integer("PORT", 8000, least=1)

COMPRESSION = {
    "CONVERSATION": "chatapp.Conversation",
    "SUMMARY": "chatapp.Summary",
    "THRESHOLD": environment.share(
        "COMPRESSION_THRESHOLD",
        defaults.THRESHOLD,
        low=defaults.LOWEST_THRESHOLD,
        high=defaults.HIGHEST_THRESHOLD,
    ),
    "SOFT_THRESHOLD": environment.share(
        "COMPRESSION_SOFT_THRESHOLD",
        defaults.SOFT_THRESHOLD,
        low=defaults.LOWEST_SOFT_THRESHOLD,
        high=defaults.HIGHEST_THRESHOLD,
    ),
    "KEEP_TURNS": environment.integer("COMPRESSION_KEEP_TURNS", defaults.KEEP_TURNS, least=1),
    "SUMMARY_TOKENS": environment.integer(
        "COMPRESSION_SUMMARY_TOKENS", defaults.SUMMARY_TOKENS, least=100
    ),
    "PREPARE_MESSAGES": environment.integer(
        "COMPRESSION_PREPARE_MESSAGES", defaults.PREPARE_MESSAGES
    ),
    "MAX_CALLS": environment.integer("COMPRESSION_MAX_CALLS", defaults.MAX_CALLS, least=1),
    "PROMPTS_DIR": environment.text("PROMPTS_DIR"),
    "PROBE": environment.boolean("COMPRESSION_PROBE", defaults.PROBE),
    "TOOL_RESULT_MAX_LENGTH": environment.integer(
        "TOOL_RESULT_MAX_LENGTH", defaults.TOOL_RESULT_MAX_LENGTH, least=100
    ),
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {"refusals": {"()": "chatapp.deployment.refusal_log.RefusalFilter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "filters": ["refusals"],
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "chatapp": {"level": "INFO"},
        "compression": {"level": "INFO"},
        # Their debug and info lines hold addresses and request options.
        "openai": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        "aiohttp": {"level": "WARNING"},
        # A tool server could fill the log: each of its odd notes is a warning with a traceback.
        "client": {"level": "CRITICAL"},
        "mcp": {"level": "CRITICAL"},
    },
}

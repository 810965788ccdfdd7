"""Settings of the bundled project. The only module that reads the environment; docs/settings.md lists the names."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.management.utils import get_random_secret_key
from django.utils.translation import gettext_lazy as _

from scheduler_app import embedded_db
from scheduler_app.conf import Conf
from scheduler_app.logs import logging_config

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent
#: In a checkout the API is the package ``api``; a wheel calls it ``scheduler_app_api``, not to claim a common name.
IS_CHECKOUT = (BASE_DIR / "manage.py").exists()
API_PACKAGE = "api" if IS_CHECKOUT else "scheduler_app_api"

# ── Knobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────
_NEAR = BASE_DIR if IS_CHECKOUT else Path.cwd()
HOME = Path(env.str("SCHEDULER_HOME", default=str(_NEAR / ".scheduler"))).expanduser().absolute()


def _kept(name: str) -> str:
    """A secret that ``bin/run`` keeps in a file of the home folder; empty when there is none."""
    try:
        return (HOME / name).read_text().strip()
    except OSError:
        return ""


def _knobs() -> dict[str, Any]:
    """What the environment says of :class:`Conf`'s fields, each read as the type of its default."""
    found: dict[str, Any] = {}
    for spec in dataclasses.fields(Conf):
        variable = f"SCHEDULER_{spec.name.upper()}"
        if env.str(variable, default=""):
            kind = type(spec.default)
            found[spec.name] = tuple(env.list(variable)) if kind is tuple else env.get_value(variable, cast=kind)
    return found


SCHEDULER: dict[str, Any] = {"home": HOME, **_knobs()}
SCHEDULER["home"] = HOME
if "fernet_keys" not in SCHEDULER and _kept("fernet_key"):
    SCHEDULER["fernet_keys"] = tuple(_kept("fernet_key").split())

# ── Security ─────────────────────────────────────────────────────────────────────────────────────────────────────────
SECRET_KEY = env.str("SCHEDULER_SECRET_KEY", default="") or _kept("secret_key")
SECRET_KEY_IS_TEMPORARY = not SECRET_KEY
SECRET_KEY = SECRET_KEY or get_random_secret_key()
DEBUG = env.bool("SCHEDULER_DEBUG", default=False)
ALLOWED_HOSTS = env.list(
    "SCHEDULER_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", SCHEDULER.get("host", "127.0.0.1")]
)
CSRF_TRUSTED_ORIGINS = env.list("SCHEDULER_CSRF_TRUSTED_ORIGINS", default=[])
_HTTPS = env.bool("SCHEDULER_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if _HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_NAME = "scheduler_session"
CSRF_COOKIE_NAME = "scheduler_csrf"
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
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
#: Of the user admin that ``bin/run`` makes; empty: the generated one in the file.
ADMIN_PASSWORD = env.str("SCHEDULER_ADMIN_PASSWORD", default="")
ADMIN_PASSWORD_FILE = HOME / "admin_password"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# ── Application ──────────────────────────────────────────────────────────────────────────────────────────────────────
INSTALLED_APPS = [
    "scheduler_app",
    API_PACKAGE,
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "django_prometheus",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.gzip.GZipMiddleware",  # before the next: files that nobody collected are compressed too
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
ROOT_URLCONF = "scheduler_app.urls"
WSGI_APPLICATION = "scheduler_app.wsgi.application"
ASGI_APPLICATION = "scheduler_app.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"] if IS_CHECKOUT else [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# ── Database ─────────────────────────────────────────────────────────────────────────────────────────────────────────
_DATABASE_URL = env.str("DATABASE_URL", default="")
DATABASE_ADVICE = (
    "Is the server that DATABASE_URL names running, and may this user log in?"
    if _DATABASE_URL
    else "No DATABASE_URL is set and the embedded PostgreSQL of SCHEDULER_HOME does not run. Start bin/run in another "
    "terminal, or set DATABASE_URL=postgresql://user:password@host:5432/name."
)
#: Whether the server is the one that ``manage.py standalone`` starts.
EMBEDDED_DATABASE = not _DATABASE_URL
DATABASES: dict[str, dict[str, Any]] = {
    "default": environ.Env.db_url_config(_DATABASE_URL) if _DATABASE_URL else embedded_db.django_database(HOME)
}
#: A server that vanishes without a word (its machine, or the network) is noticed within a minute, not after two hours.
#: Over a Unix socket only the first matters. DATABASE_URL may say otherwise (``?connect_timeout=3``).
_NOTICE_LOSS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
DATABASES["default"]["OPTIONS"] = _NOTICE_LOSS | DATABASES["default"].get("OPTIONS", {})
if DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    DATABASES["default"]["ENGINE"] = "scheduler_app.postgresql"
DATABASES["default"] |= {
    "CONN_MAX_AGE": env.int("SCHEDULER_CONN_MAX_AGE_SECONDS", default=600),
    "CONN_HEALTH_CHECKS": True,
    "ATOMIC_REQUESTS": False,
}
if env.str("SCHEDULER_TEST_DATABASE", default=""):
    DATABASES["default"]["TEST"] = {"NAME": env.str("SCHEDULER_TEST_DATABASE")}

# ── Language, time, static files ─────────────────────────────────────────────────────────────────────────────────────
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English"))]
LOCALE_PATHS = [Path(__file__).resolve().parent / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"] if IS_CHECKOUT else []
STATIC_ROOT = Path(env.str("SCHEDULER_STATIC_ROOT", default=str(HOME / "static")))
#: Collected files get names with a hash and are served compressed; otherwise they come from where they lie.
_COLLECTED = (STATIC_ROOT / "staticfiles.json").exists()
WHITENOISE_USE_FINDERS = not _COLLECTED
if not _COLLECTED:
    warnings.filterwarnings("ignore", message="No directory at", module="django.core.handlers.base")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if _COLLECTED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# ── API ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Workflow scheduler",
    "VERSION": "2",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# ── Logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
#: https://no-color.org: any value switches colours off.
NO_COLOUR = bool(env.str("NO_COLOR", default=""))
LOGGING = logging_config(
    env.str("SCHEDULER_LOG_LEVEL", default="INFO"), as_json=env.bool("SCHEDULER_LOG_JSON", default=False)
)

# ── Mail ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
_EMAIL_URL = env.str("SCHEDULER_EMAIL_URL", default="")
if _EMAIL_URL:
    globals().update({key: value for key, value in env.email_url("SCHEDULER_EMAIL_URL").items() if key != "OPTIONS"})
else:
    EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("SCHEDULER_EMAIL_FROM", default="scheduler@localhost")

# ── Celery ───────────────────────────────────────────────────────────────────────────────────────────────────────────
CELERY_BROKER_URL = SCHEDULER.get("celery_broker_url", "")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"

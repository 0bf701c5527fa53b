"""Django settings, read from the environment; importing them starts nothing and connects to nothing.

Every variable is optional on a workstation. In production set at least WRITEGATE_SECRET_KEY, WRITEGATE_HOSTS, DATABASE_URL,
DATABASE_OWNER_URL (for migrations) and CELERY_BROKER_URL. Any variable may be given as NAME_FILE instead, a path whose
content is the value: that is how containers receive secrets.
"""

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.templatetags.static import static

from compliance import connections
from compliance.api.enums import NAMED_ENUMS
from compliance.source_settings import *  # noqa: F403 - settings by the same names
from compliance.variables import flag, https_address, text, whole, words

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = connections.data_directory()


def _secret_key() -> str:
    given = text("WRITEGATE_SECRET_KEY")
    if given:
        return given
    path = DATA_DIR / "secret-key"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        key = secrets.token_urlsafe(50)
        connections.write_secret(path, key)
        return path.read_text(encoding="utf-8").strip()


DEBUG = flag("WRITEGATE_DEBUG")
SECRET_KEY = _secret_key()
ALLOWED_HOSTS = words("WRITEGATE_HOSTS", "localhost,127.0.0.1,[::1]")
# The addresses under which browsers reach us, such as https://gate.example.org; one https address turns on secure cookies.
CSRF_TRUSTED_ORIGINS = words("WRITEGATE_ORIGINS")
CSRF_FAILURE_VIEW = "compliance.api.errors.csrf_failed"
_SERVED_BY_HTTPS = any(urlsplit(origin).scheme == "https" for origin in CSRF_TRUSTED_ORIGINS)

INSTALLED_APPS = [
    "compliance",
    "policies",
    "evaluations",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "compliance.admin.apps.ConsoleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    # First: decisions need nothing of what follows, and are asked thousands of times a second.
    "compliance.api.authzen.lean.LeanPathMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "compliance.headers.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "compliance.urls"
WSGI_APPLICATION = "compliance.wsgi.application"
ASGI_APPLICATION = "compliance.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
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

# --- databases -------------------------------------------------------------------------------------------------------------
# `default` is the runtime role, `owner` the role that migrates. Services own their transactions: never ATOMIC_REQUESTS.

_pair = connections.settled_pair(os.environ, DATA_DIR) or connections.RolePair(
    # The embedded server, not started by us: a connection then fails and says that nothing listens on this socket.
    *(
        connections.build_address(user=role, host=str(DATA_DIR / "postgres" / "run"), dbname=connections.DEFAULT_DATABASE)
        for role in ("writegate_runtime", "writegate_owner")
    )
)
_runtime_role = connections.parse_address(_pair.runtime_url).get("user", "")
DATABASES: dict[str, dict[str, Any]] = {
    "default": connections.django_database(_pair.runtime_url, variable="DATABASE_URL"),
    "owner": connections.django_database(
        _pair.owner_url, variable="DATABASE_OWNER_URL", options=connections.owner_options(_runtime_role)
    ),
}
for _entry in DATABASES.values():
    # A database that is gone must not hold a request, or a readiness check, for minutes.
    _entry["OPTIONS"].setdefault("connect_timeout", "5")
# No pool: each thread keeps a connection of its own. After an outage a pool goes on trying by a clock of its own, with growing
# waits, while a thread connects at once, and says no at once.
DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ----------------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "compliance.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "admin:index"

# Signing in, by django-allauth under /accounts/. Accounts are made by our services alone: nobody signs up, and no address is confirmed.
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "compliance.admin.entrance.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_REAUTHENTICATION_TIMEOUT = 5 * 60  # seconds; for changing one's factors. Signing reads the policy's own minutes.
# Ten refused attempts a minute from one address, five in five minutes for one account, whatever the address.
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/300s/key"}
MFA_ADAPTER = "compliance.admin.entrance.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Writegate"
MFA_TOTP_TOLERANCE = 1  # thirty seconds to either side, for clocks that differ; a code works once all the same
# Browsers offer passkeys over https, and on http://localhost alone.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not _SERVED_BY_HTTPS
# Attempts and used codes are counted where every process sees them. An attacker must not be able to push them out.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "compliance_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

# The company's own sign-in, by OpenID Connect: it opens an account that is there already, under the same verified address.
OIDC_ISSUER = text("WRITEGATE_OIDC_ISSUER")
SOCIALACCOUNT_ADAPTER = "compliance.admin.entrance.CompanyAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_ISSUER:
    INSTALLED_APPS.append("allauth.socialaccount.providers.openid_connect")
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "company",
                "name": "Company account",
                "client_id": text("WRITEGATE_OIDC_CLIENT_ID"),
                "secret": text("WRITEGATE_OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }
# Every change announces itself to this function, inside its own transaction; compliance.E001 refuses to start without it.
AUDIT_SINK = "compliance.ledger.writer.append"

# --- policies and evidence -------------------------------------------------------------------------------------------------

# The roles that a policy may ask signatures of, as compliance.vocabulary.Role lists them; handed down to the policy compiler.
POLICY_ROLES = (
    "requester",
    "system_owner",
    "security",
    "policy_approver",
    "policy_author",
    "evidence_steward",
    "auditor",
    "administrator",
)
# What no policy can go below: factor, role, and how many different people. Nobody who had a part in what is signed counts.
SIGN_OFF_FLOORS = {
    "activation": (("policy-approvers", "policy_approver", 2),),
    "ruling": (("evidence-stewards", "evidence_steward", 2),),
    # Who proposes is one person, who signs another.
    "metric": (("evidence-stewards", "evidence_steward", 1),),
    "benchmark": (("evidence-stewards", "evidence_steward", 1),),
    "source": (("evidence-stewards", "evidence_steward", 1),),
    "break_glass_review": (("system-owner", "system_owner", 1), ("security", "security", 1)),
}
SIGN_OFF_MINUTES = 5
SIGN_OFF_HOURS = 72
# The conformance profile answers certification's questions, on a database without grants alone; its properties come from a JSON file.
CONFORMANCE = flag("WRITEGATE_CONFORMANCE")
CONFORMANCE_ATTRIBUTES = text("WRITEGATE_CONFORMANCE_ATTRIBUTES")
UPLOAD_DIR = Path(text("WRITEGATE_UPLOAD_DIR") or DATA_DIR / "uploads")
# Of one file handed in, and of all that wait to be read; so much of the disk stays free in any case.
UPLOAD_MAX_BYTES = whole("WRITEGATE_UPLOAD_MAX_BYTES", 2 * 1024**3)
UPLOAD_QUOTA_BYTES = 10 * UPLOAD_MAX_BYTES
UPLOAD_FREE_BYTES = 1024**3
UPLOAD_SECONDS = 60 * 60
# Public keys (PEM) whose signature under an in-toto statement attests the file that it is about.
EVIDENCE_KEYS = text("WRITEGATE_EVIDENCE_KEYS")
EVIDENCE_MAX_FILE_BYTES = int(text("WRITEGATE_EVIDENCE_MAX_FILE_BYTES", str(1024**3)))

# --- decisions -------------------------------------------------------------------------------------------------------------

# The address under which others know the gate, by default the first https one for browsers. Discovery tells it, and is off without.
PUBLIC_URL = https_address("WRITEGATE_PUBLIC_URL") or next(
    (url.rstrip("/") for url in CSRF_TRUSTED_ORIGINS if url.startswith("https:")), ""
)
# An Ed25519 private key (PEM) that signs the discovery document; unset, it goes unsigned. Never the ledger's.
METADATA_KEY = text("WRITEGATE_METADATA_KEY")
# Questions a second of one token in one process; twice as many at once.
DECISIONS_PER_SECOND = whole("WRITEGATE_DECISIONS_PER_SECOND", 5_000)
# How long an offline bundle counts, in seconds, at most an hour: so long may a revocation take to reach who cannot be reached.
OFFLINE_BUNDLE_SECONDS = whole("WRITEGATE_OFFLINE_SECONDS", 300, most=3_600)
# A private key (PEM; P-256 or RSA) that signs offline bundles in the form of OPA; unset, there are none in that form.
OPA_KEY = text("WRITEGATE_OPA_KEY")
REPLAY_SAMPLE = whole("WRITEGATE_REPLAY_SAMPLE", 5_000)  # Verdicts judged once more every night.

# `/metrics` asks for a token with the scope `read`, unless this opens it to whoever reaches the port.
METRICS_OPEN = flag("WRITEGATE_METRICS_OPEN")

# --- the ledger ------------------------------------------------------------------------------------------------------------
# Checkpoints are signed by this key, in the text form `PRIVATE+KEY+…`; unset, by one that is made once in the data directory.
# The origin names the log and its key for ever: a schema-less address, by default the first public one.

LEDGER_KEY = text("WRITEGATE_LEDGER_KEY")
LEDGER_KEY_PATH = DATA_DIR / "ledger-key"
LEDGER_ORIGIN = text("WRITEGATE_LEDGER_ORIGIN")
LEDGER_DEFAULT_ORIGIN = f"{next((urlsplit(url).netloc for url in CSRF_TRUSTED_ORIGINS), '') or 'writegate.local'}/ledger"
AUDIT_EXPORT_DIR = Path(text("WRITEGATE_EXPORT_DIR") or DATA_DIR / "exports")

# --- notices ---------------------------------------------------------------------------------------------------------------
# Addresses in Apprise's form. They hold passwords: nothing prints them. Unset, no message of that channel is queued.

NOTICE_EVENT_PREFIX = text("WRITEGATE_EVENT_PREFIX", "org.writegate")
# Without an address of its own, the service is reached on this machine, where `serve` listens.
NOTICE_ORIGIN = next(iter(CSRF_TRUSTED_ORIGINS), f"http://localhost:{whole('WRITEGATE_PORT', 8000)}").rstrip("/")
NOTICE_MAIL_URL = text("WRITEGATE_MAIL_URL")
NOTICE_CHAT_URLS = words("WRITEGATE_CHAT_URLS")
# host:port of webhook endpoints that may lie inside our own network, or be asked without TLS.
WEBHOOK_ALLOW = words("WRITEGATE_WEBHOOK_ALLOW")

# --- language and time -----------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# --- files -----------------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
# Collected files, for images. Unset, they are served straight from the installed packages: `make run` needs no collecting.
STATIC_ROOT = text("WRITEGATE_STATIC_DIR") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

# --- browsers --------------------------------------------------------------------------------------------------------------

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _SERVED_BY_HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 60 * 60  # seconds
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if _SERVED_BY_HTTPS else 0
SECURE_SSL_REDIRECT = False  # the proxy's task: health checks reach us over plain HTTP
if flag("WRITEGATE_BEHIND_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    ALLAUTH_TRUSTED_PROXY_COUNT = 1  # the last address of X-Forwarded-For is the proxy's word
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- the API ---------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "compliance.api.authentication.TokenAuthentication",
        "compliance.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "compliance.api.errors.problem_handler",
    "COERCE_DECIMAL_TO_STRING": True,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Writegate",
    "DESCRIPTION": "Which model or agent may hold standing write access to which production system, why, and who said so.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "compliance.api.authzen.openapi.describe_doors",
    ],
    # Closed lists that stand under a common field name: each keeps a name of its own, whatever is added beside it.
    "ENUM_NAME_OVERRIDES": {path.rpartition(".")[2]: path for path in NAMED_ENUMS},
    # Served from our own static files: the page loads nothing from outside.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Writegate",
    "SITE_HEADER": "Writegate",
    "SITE_ICON": lambda request: static("writegate/favicon.svg"),
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("writegate/favicon.svg")}],
    "STYLES": [lambda request: static("writegate/console.css")],
    "SCRIPTS": [lambda request: static("writegate/console.js")],
    # One hue for links and switches, blue: red, amber, green and violet are the verdicts'.
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.6)",
            "100": "oklch(93.2% .032 255.6)",
            "200": "oklch(88.2% .059 254.1)",
            "300": "oklch(80.9% .105 251.8)",
            "400": "oklch(70.7% .165 254.6)",
            "500": "oklch(66% .17 258)",
            "600": "oklch(52% .22 262.9)",
            "700": "oklch(46% .22 264.4)",
            "800": "oklch(40% .19 265.6)",
            "900": "oklch(36% .14 265.5)",
            "950": "oklch(28.2% .091 267.9)",
        }
    },
    "ACCOUNT": {"navigation": "compliance.admin.navigation.account_links"},
    "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": "compliance.admin.navigation.groups"},
}

# --- background work -------------------------------------------------------------------------------------------------------
# Read by compliance/celery.py. Unset: queues in our own PostgreSQL.

CELERY_BROKER_URL = text("CELERY_BROKER_URL")
CELERY_BROKER_DATABASE_URL = _pair.runtime_url
CELERY_QUEUE = text("WRITEGATE_QUEUE", "writegate")

# --- logging ---------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": "compliance.logs.PlainFormatter"},
        "json": {"()": "compliance.logs.JsonFormatter"},
    },
    "filters": {"no_readiness": {"()": "compliance.logs.WithoutReadiness"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "filters": ["no_readiness"],
            "formatter": "json" if text("WRITEGATE_LOG_FORMAT") == "json" else "plain",
        }
    },
    "root": {"handlers": ["stderr"], "level": text("WRITEGATE_LOG_LEVEL", "WARNING").upper()},
    "loggers": {
        **{name: {"level": text("WRITEGATE_LOG_LEVEL", "INFO").upper()} for name in ("compliance", "policies", "evaluations")},
        # Their lines may quote an address with its password; what matters of them goes, masked, into a notice's `last_error`.
        "apprise": {"propagate": False},
        **{name: {"level": "WARNING"} for name in ("urllib3", "requests")},
    },
}

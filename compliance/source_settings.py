"""Settings of refreshing sources: what of it the environment says, and its limits. Read by `compliance.settings`."""

from pathlib import Path

from compliance.variables import named, text, whole, words

# Keys for other people's interfaces, by the name of their variable; each value is `host key`, and the key goes to that host alone.

SOURCE_KEY_PREFIX = "WRITEGATE_SOURCE_KEY_"
SOURCE_KEYS = named(SOURCE_KEY_PREFIX)
# host:port of sources that may lie inside our own network, or be asked without TLS.
REFRESH_ALLOW = words("WRITEGATE_REFRESH_ALLOW")
# The folder below which watched folders lie. Unset, none is watched.
WATCH_DIR = Path(text("WRITEGATE_WATCH_DIR")) if text("WRITEGATE_WATCH_DIR") else None
WATCH_STABLE_SECONDS = 10
REFRESH_SECONDS = 25  # for all that one run fetches; importing comes after it, within the task's limit
REFRESH_MAX_BYTES = 64 * 1024 * 1024  # likewise
REFRESH_MAX_PAGES = 200
REFRESH_HOST_RATE = whole("WRITEGATE_REFRESH_HOST_RATE", 5)  # requests a second to one host, over all workers
REFRESH_HOST_CONCURRENCY = 2
REFRESH_BASES = {
    "artificial_analysis": "https://artificialanalysis.ai/api/v2/language/models",
    "hugging_face": "https://huggingface.co",
    "github": "https://raw.githubusercontent.com",
}

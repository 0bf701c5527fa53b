"""The web application, as granian serves it."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
_django = get_wsgi_application()

from compliance.api.authzen.lean import LeanApplication  # noqa: E402  (what it needs is set up now)

application = LeanApplication(_django)

# What is loaded now stays: looked through at every full collection, it would hold up all threads for longer than an answer takes.
gc.collect()
gc.freeze()

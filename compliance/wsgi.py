"""The web application, as granian serves it."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
_django = get_wsgi_application()

from compliance import telemetry  # noqa: E402  (what they need is set up now)
from compliance.api.authzen.doors import DOORS, PREFIX, TASK_ADDRESSES  # noqa: E402
from compliance.api.authzen.lean import LeanApplication  # noqa: E402

application = telemetry.traced(LeanApplication(_django), prefix=PREFIX, doors=(*DOORS, *TASK_ADDRESSES))

# What is loaded now stays: looked through at every full collection, it would hold up all threads for longer than an answer takes.
gc.collect()
gc.freeze()
# And what a request makes goes without the collector, but for a few rings: it need not look after every 700 objects.
gc.set_threshold(50_000, 20, 20)

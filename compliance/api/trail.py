"""Where the log stands on this site, for clients that speak C2SP `tlog-tiles`, and who may read which part of it.

- `/ledger/checkpoint` and the tiles of hashes are open. A witness needs no account, and they say no more than how many entries there
  are: every entry begins with random bits (its id) that nobody outside knows, so that a guess at one cannot be held against its hash.
- Entry bundles are the trail itself, 256 entries a bundle. The same rule opens them as the trail in the API: a bundle that any token
  could read would be the trail by the back door.
"""

from django.http import HttpResponseBase
from django.urls import path
from rest_framework.request import Request

from compliance.api.ledger import checkpoint, tile
from compliance.api.permissions import ReadsTrail
from compliance.api.views import ApiView
from compliance.ledger.tiles import ENTRIES

app_name = "ledger"


class EntryBundle(ApiView):
    """`<prefix>/tile/entries/<N>[.p/<W>]`: the log's own view, behind the trail's rule."""

    schema = None  # type: ignore[assignment]  # its format is C2SP's, and no part of our API
    permission_classes = (ReadsTrail,)

    def get(self, request: Request, name: str) -> HttpResponseBase:
        return tile(request._request, f"{ENTRIES}/{name}")


urlpatterns = [
    path("checkpoint", checkpoint, name="checkpoint"),
    path(f"tile/{ENTRIES}/<path:name>", EntryBundle.as_view(), name="entries"),
    path("tile/<path:name>", tile, name="tile"),
]

"""A world for a served gate, and a hand on it: `python -m tests.support.gate_control` takes a word a line and answers a line of JSON.

`world` makes a grant and says how to ask about it; `token` makes another token, for scopes; `suspend` takes the grant back; `back`
signs it once more; `rows` says which of the ids that follow are recorded allows; `sql` runs a statement as the superuser; `pid` tells
the database server's process.
"""

import json
import sys
from typing import Any

from tests.bench.database import prepare


class Control:
    """What each word does."""

    def __init__(self) -> None:
        from tests.support import signing
        from tests.support.asking import ask_token

        self._land = signing.ground()
        self._grant = signing.granted(self._land)
        self._token = ask_token(self._land.asker)

    def world(self) -> dict[str, Any]:
        return {"token": self._token, "subject": "model-a", "system": "hr-prod", "grant": str(self._grant.uid)}

    def token(self, *scopes: str) -> dict[str, Any]:
        from tests.support.asking import ask_token

        return {"token": ask_token(self._land.asker, *scopes)}

    def suspend(self) -> dict[str, Any]:
        from compliance.services.stopping import suspend_grant
        from tests.support import signing

        suspend_grant(actor=signing.actor_of(self._land.security), grant=self._grant.reload(), reason="odd")
        return {}

    def back(self) -> dict[str, Any]:
        from tests.support import grants

        grants.back(self._land, self._grant.reload())
        return {}

    def rows(self, *uids: str) -> dict[str, Any]:
        from compliance.models import Decision, LedgerEntry

        found = Decision.objects.filter(uid__in=uids, allowed=True)
        entries = LedgerEntry.objects.filter(uid__in=found.values("entry")).count()
        return {"recorded": sorted(str(row.uid) for row in found), "entries": entries}

    def sql(self, *words: str) -> dict[str, Any]:
        import psycopg
        from django.conf import settings
        from django.db import connection

        from compliance import embedded
        from compliance.connections import with_parts

        server = embedded.start(settings.DATA_DIR)
        address = with_parts(server.superuser_url, dbname=connection.settings_dict["NAME"])
        with psycopg.connect(address, autocommit=True) as owner:
            owner.execute(" ".join(words))
        server.release()
        return {}

    def pid(self) -> dict[str, Any]:
        from django.conf import settings

        (found,) = settings.DATA_DIR.rglob("postmaster.pid")
        return {"pid": int(found.read_text().split()[0])}

    def start(self) -> dict[str, Any]:
        """Start the database server where it was stopped."""
        from django.conf import settings
        from django.db import connection

        from compliance import embedded

        connection.close()
        embedded.start(settings.DATA_DIR)
        return {}


def main() -> None:
    prepare()
    control = Control()
    for line in sys.stdin:
        word, *rest = line.split()
        json.dump(getattr(control, word)(*rest), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

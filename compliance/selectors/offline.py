"""What an offline bundle is made from: words and names to judge, the bundle that is there, and whether anything happened since."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import connection

from compliance.models import OfflineBundle
from policies.models import System

UNMOVED = ("decision.made", "ledger.beat", "offline_bundle.made", "offline_bundle.handed_out", "offline_bundle.refused")
"""Actions that change nothing that an answer could rest on."""
MOST_ENTRIES = 20_000
"""So many entries are looked through; more of them count as news."""

_ACTIONS = """
SELECT DISTINCT word FROM compliance_grantsystem o JOIN compliance_grant g ON g.id = o.grant_id
CROSS JOIN unnest(g.actions) AS word WHERE o.system_id = %s AND g.status = 'active' ORDER BY word
"""
# A name that is to mean somebody else before the bundle ends is left to those who ask.
_NAMES = """
SELECT a.subject_version_id, a.name_as_written FROM evaluations_aliasassignment a
WHERE a.subject_version_id = ANY (%(versions)s) AND a.source_id IS NULL
    AND (a.effective_from IS NULL OR a.effective_from <= %(at)s)
    AND NOT EXISTS (
        SELECT FROM evaluations_aliasassignment later
        WHERE later.name_as_written = a.name_as_written AND later.source_id IS NULL AND later.id > a.id
            AND (later.effective_from IS NULL OR later.effective_from < %(until)s))
ORDER BY a.subject_version_id, a.name_as_written
"""
_NEWS = """
SELECT count(*), count(*) FILTER (WHERE action <> ALL (%(unmoved)s)) FROM (
    (SELECT entry.action FROM compliance_ledgerleaf leaf JOIN compliance_ledgerentry entry ON entry.id = leaf.entry_id
        WHERE leaf."index" >= %(size)s ORDER BY leaf."index" LIMIT %(most)s)
    UNION ALL
    (SELECT entry.action FROM compliance_ledgerpending waiting JOIN compliance_ledgerentry entry ON entry.id = waiting.entry_id
        LIMIT %(most)s)
) AS since
"""


def stored_bundle(system: System) -> OfflineBundle | None:
    """Return the newest offline bundle of a system, without its payload: most who ask have it."""
    return OfflineBundle.objects.select_related("system").defer("payload", "signature").filter(system=system).first()


def payload_of(bundle: OfflineBundle) -> tuple[bytes, bytes] | None:
    """Return the payload of a bundle and the signature that lies beside it; None where another one has taken its place."""
    rows = OfflineBundle.objects.filter(pk=bundle.pk, serial=bundle.serial).values_list("payload", "signature")
    found = rows.first()
    return None if found is None else (bytes(found[0]), bytes(found[1]))


def granted_words(system: System) -> list[str]:
    """Return the actions for which anybody has an active grant at a system, in order."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTIONS, [system.pk])
        return [word for (word,) in cursor.fetchall()]


def names_meaning(versions: Collection[int], *, at: datetime, until: datetime) -> Mapping[int, list[str]]:
    """Return the aliases of subject versions, by row id, that mean them at an instant and are not known to move before another."""
    found: dict[int, list[str]] = defaultdict(list)
    if versions:
        with connection.cursor() as cursor:
            cursor.execute(_NAMES, {"versions": list(versions), "at": at, "until": until})
            for version, name in cursor.fetchall():
                if name not in found[version]:
                    found[version].append(name)
    return found


def has_news(*, since_size: int) -> bool:
    """True where the log tells of anything but answers behind so many entries, or where that would take long to tell."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWS, {"unmoved": list(UNMOVED), "size": since_size, "most": MOST_ENTRIES})
        entries, news = cursor.fetchone()
    return bool(news) or entries >= MOST_ENTRIES

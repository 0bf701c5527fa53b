"""Logs and exports for tests: appended through the audit port, exported by the real exporter, taken apart and put together again."""

import io
import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from django.db import transaction

from compliance.ledger import bundle
from compliance.ledger.findings import Report
from compliance.ledger.parts import MemoryParts
from compliance.ledger.verifier import verify_parts
from compliance.models import AuditExport
from compliance.services.exports import advance_export, start_export
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, system_job

ACTOR = system_job("test")


def append(count: int, *, start: int = 0, actor: Actor = ACTOR, action: str = "thing.made") -> None:
    """Record events about `thing:<start>` and following, in one transaction."""
    with transaction.atomic():
        audit.record(
            *(
                audit.Event(
                    action=action, actor=actor, target=("thing", str(number)), old={"value": number}, new={"value": number + 1}
                )
                for number in range(start, start + count)
            )
        )


def export(path: Path, **order: object) -> AuditExport:
    """Export as an operator would, to the end."""
    job = start_export(actor=ACTOR, path=path, **order)
    return advance_export(job.uid, seconds=600)


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    """Return a zip of members, made by another writer than ours."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def with_manifest(members: dict[str, bytes], change: Callable[[dict], None]) -> dict[str, bytes]:
    """Return the members with a changed manifest and a digest that fits it: what a forger would do."""
    manifest = json.loads(members[bundle.MANIFEST])
    change(manifest)
    data = bundle.write_json(manifest)
    return members | {
        bundle.MANIFEST: data,
        bundle.MANIFEST_DIGEST: f"{sha256(data).hexdigest()}  {bundle.MANIFEST}\n".encode(),
    }


def verified(members: dict[str, bytes], **options: object) -> Report:
    """Verify members that were never packed."""
    return verify_parts(MemoryParts(members), **options)


def told(report: Report) -> set[tuple[str, int | None]]:
    """Return (kind, index) of each finding."""
    return {(str(finding.kind), finding.index) for finding in report.findings}

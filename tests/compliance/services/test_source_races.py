"""The trust in a source under fire: whoever signs at the same moment, it moves once a request, and never by hand."""

from functools import partial

import psycopg
import pytest

from compliance.models import SignOff, SignOffRequest, User
from evaluations.importers.bundle_entries import SourceEntry
from evaluations.importers.bundles import DATA, Bundle, read_bundle
from evaluations.kernel.services import service_transaction
from evaluations.models import Source, TrustAssignment
from evaluations.services.bundles import apply_load_evidence_bundle
from tests.support import signing, world
from tests.support.definitions import SOURCE, ask_source, stewards
from tests.support.racing import codes, racers


def signs(account: User, request: SignOffRequest) -> partial:
    """Return the call by which somebody signs what stands there now."""
    return partial(signing.sign, account, SignOffRequest.objects.get(pk=request.pk))


def brings(bundle: Bundle) -> None:
    with service_transaction("load_bundle"):
        apply_load_evidence_bundle(actor=world.ACTOR, bundle=bundle)


def test_two_last_signatures_trust_a_source_once(committed_db) -> None:
    world.register()
    people = stewards()
    with racers(2) as race:
        for number in range(4):
            request = ask_source(people[0], key=f"own-{number}")
            outcomes = race.run(*[signs(account, request) for account in people[1:]])
            assert codes(outcomes) == ["", "request_closed"]
            assert TrustAssignment.objects.filter(source__key=f"own-{number}").count() == 1
            assert SignOff.objects.filter(request=request).count() == 1


def test_two_requests_for_one_source_come_one_after_the_other(committed_db) -> None:
    world.register()
    people = stewards()
    with racers(2) as race:
        for number in range(4):
            asked = [ask_source(people[0], key=f"own-{number}", tier=tier) for tier in ("archive", "vendor")]
            outcomes = race.run(*map(signs, people[1:], asked))
            assert codes(outcomes) == ["", "dossier_changed"]
            assert TrustAssignment.objects.filter(source__key=f"own-{number}").count() == 1
    assert Source.objects.filter(key__startswith="own-").count() == 4


def test_a_bundle_that_brings_the_source_meanwhile_comes_before_or_after_the_signature(committed_db) -> None:
    world.register()
    people = stewards()
    demo = read_bundle(DATA / "demo")
    with racers(2) as race:
        for number in range(4):
            request = ask_source(people[0], key=f"own-{number}", tier="vendor")
            entry = SourceEntry(f"own-{number}", SOURCE["title"], "", "", "", "archive", "shipped")
            bundle = Bundle(**dict.fromkeys(Bundle._fields, ()) | {"name": demo.name, "path": demo.path, "sources": (entry,)})
            signed, loaded = race.run(signs(people[1], request), partial(brings, bundle))
            assert loaded.refused == ""
            tiers = [row.tier for row in TrustAssignment.objects.filter(source__key=entry.key)]
            assert (signed.refused, tiers) in (("", ["vendor"]), ("dossier_changed", ["archive"]))


@pytest.mark.parametrize("word", ["by_hand", "load_bundle"])
def test_the_runtime_role_moves_no_trust_by_hand(committed_db, runtime_connection, word: str) -> None:
    world.register()
    with runtime_connection() as raw:
        raw.execute(f"BEGIN; SELECT set_config('writegate.service', '{word}', true)")
        with pytest.raises(psycopg.errors.CheckViolation, match="the trust in a source needs the signatures"):
            raw.execute(
                "INSERT INTO evaluations_trustassignment (source_id, tier, reason, assigned_by, recorded_at) "
                "SELECT id, 'reproduced', 'x', 'person:x', now() FROM evaluations_source WHERE key = 'lab'"
            )
    assert [row.tier for row in TrustAssignment.objects.filter(source__key="lab")] == ["independent"]

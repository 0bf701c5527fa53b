"""Case O-08: a name that looks the same on screen is another name, on every road; each refusal names the code point."""

import io
import json

import pytest
from django.core.management import call_command

from compliance.services.registrations import accept_subject
from evaluations.kernel.errors import InputRefused
from evaluations.models import AliasAssignment, Evidence, Subject
from evaluations.services.agents import register_model
from evaluations.services.subjects import assign_alias, register_subject
from evaluations.vocabulary import SubjectKind
from policies.services.policies import propose_policy_version
from policies.services.systems import register_system
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, codes_of

CYRILLIC = "cl\u0430ude-fable-5"
HYPHENS = "claude\u2011fable\u20115"
LOOK_ALIKES = [(CYRILLIC, "U+0430 CYRILLIC SMALL LETTER A"), (HYPHENS, "U+2011 NON-BREAKING HYPHEN")]
HEADER = "subject,source,provenance,metric,benchmark,version,value,unit,run_status,run_ended_at\n"

pytestmark = [pytest.mark.django_db, pytest.mark.parametrize(("name", "told"), LOOK_ALIKES)]


def test_no_subject_is_registered_under_it(name: str, told: str) -> None:
    body = {"kind": "model", "key": name, "provider": "lab", "snapshot": "1"}
    roads = [
        lambda: register_subject(actor=world.ACTOR, key=name, kind="model"),
        lambda: register_model(actor=world.ACTOR, key=name, provider="lab", snapshot="1"),
        lambda: accept_subject(actor=world.ACTOR, body=json.dumps(body).encode(), kinds=SubjectKind.values),
    ]
    for road in roads:
        with pytest.raises(InputRefused, match=told.replace("+", r"\+")):
            road()
    assert not Subject.objects.exists()


@pytest.mark.parametrize("part", ["provider", "snapshot", "effort", "quantisation"])
def test_no_part_of_an_identity_holds_it(name: str, told: str, part: str) -> None:
    parts = {"provider": "lab", "snapshot": "1", part: name}
    with pytest.raises(InputRefused) as refused:
        register_model(actor=world.ACTOR, key="m", **parts)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == (part, "look_alike")
    assert told in problem.message


def test_no_system_and_no_policy_is_called_so(name: str, told: str) -> None:
    world.register("m")
    with pytest.raises(InputRefused, match=told.replace("+", r"\+")):
        register_system(actor=world.ACTOR, key=name, title="HR", domain="hr")
    with pytest.raises(InputRefused, match=told.split(" ", maxsplit=1)[0].replace("+", r"\+")):
        propose_policy_version(actor=world.ACTOR, text=world.ONE_RULE.format(name=name, bar=80).encode())


def test_no_evidence_about_it_comes_in_by_file_or_command(name: str, told: str, tmp_path) -> None:
    world.register("claude-fable-5")
    row = f"{name},lab,run_log,infeasible_refusal_rate,bench,1,84,percent,complete,2026-11-01T00:00:00Z\n"
    for written in (json.dumps(world.submission(name)).encode(), (HEADER + row).encode()):
        with pytest.raises(InputRefused) as refused:
            world.submit(written, "evidence.csv" if written.startswith(b"subject") else "evidence.json")
        (problem,) = refused.value.problems
        assert (problem.field.rpartition(".")[2], problem.code, told in problem.message) == ("subject", "look_alike", True)
        assert problem.line or problem.row
    file = tmp_path / "evidence.csv"
    file.write_text(HEADER + row, encoding="utf-8")
    said = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("import_evidence", str(file), stdout=said, stderr=said)
    assert told in said.getvalue()
    with pytest.raises(InputRefused, match=told.replace("+", r"\+")):
        world.submit(world.submission("claude-fable-5", answered_by=[name]))
    assert not Evidence.objects.exists()


def test_no_name_is_assigned_that_holds_it(name: str, told: str) -> None:
    (version,) = world.register("claude-fable-5")
    with pytest.raises(InputRefused, match=told.replace("+", r"\+")):
        assign_alias(actor=world.ACTOR, name_as_written=name, subject_version=version)
    assert not AliasAssignment.objects.filter(name_as_written=name).exists()


def test_whoever_asks_with_it_is_told_no_and_gets_nothing_of_the_latin_model(name: str, told: str) -> None:
    land = signing.ground("84")
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    for spelled in (name, "mod\u0435l-a", "model\u2011a"):
        answer = ask_gate(token, subject=spelled)
        assert (answer.judgement.allowed, codes_of(answer), answer.judgement.evidence) == (
            False,
            ["unknown_subject", "no_grant"],
            (),
        )

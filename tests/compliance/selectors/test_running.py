"""Which version of a subject runs now."""

import pytest

from compliance.selectors.running import running_version
from compliance.services.filing import OlderVersion, refuse_older
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject
from evaluations.services.agents import register_agent
from evaluations.services.subjects import apply_register_subject
from tests.support import world

pytestmark = pytest.mark.django_db


def register(prompt: str) -> None:
    register_agent(
        actor=world.ACTOR,
        key="hr-agent",
        models=["model-a"],
        prompt_digest="sha256:" + prompt * 64,
        tool_manifest_digest="sha256:" + "0" * 64,
        harness={"name": "harness", "version": "1"},
    )


def test_the_version_registered_last_runs_and_a_roll_back_brings_the_earlier_one_back() -> None:
    world.register("model-a")
    register("a")
    subject = Subject.objects.get(key="hr-agent")
    first = running_version(subject)
    assert first is not None
    register("b")
    second = running_version(subject)
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    with pytest.raises(OlderVersion, match="version 2"):
        refuse_older(first)
    register("a")
    assert running_version(subject) == first
    refuse_older(first)
    with pytest.raises(OlderVersion, match="version 1"):
        refuse_older(second)


def test_a_subject_without_a_version_runs_nothing() -> None:
    with service_transaction("test"):
        subject = apply_register_subject(actor=world.ACTOR, key="new", kind="agent")
    assert running_version(subject) is None

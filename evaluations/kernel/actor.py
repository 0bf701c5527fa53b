"""Who did it. Every recorded act names a principal; there is no anonymous and no null actor."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class ActorKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"  # a service token
    AGENT = "agent"
    SYSTEM_JOB = "system_job"


@dataclass(frozen=True, slots=True)
class Actor:
    """A principal, by kind and stable id; for background work also on whose behalf and in which task.

    A person's printed name is not here: facts and entries hold her id, and the ledger adds a salted commitment to the name.
    """

    kind: ActorKind
    id: str
    on_behalf_of: "Actor | None" = None
    task_id: str = ""

    def __post_init__(self) -> None:
        if not self.id or not self.id.strip():
            raise ValueError("an actor needs an id")

    def for_task(self, task_id: str) -> "Actor":
        """Return the same principal, acting inside the given background task."""
        return replace(self, task_id=task_id)

    def as_value(self) -> dict[str, Any]:
        """Return the canonical value that facts and entries store."""
        value: dict[str, Any] = {"id": self.id, "kind": self.kind.value}
        if self.on_behalf_of is not None:
            value["on_behalf_of"] = self.on_behalf_of.as_value()
        if self.task_id:
            value["task_id"] = self.task_id
        return value

    @property
    def asked_by(self) -> "Actor | None":
        """Return who wanted it: the principal, or the one on whose behalf a job runs; None where a job runs by the clock."""
        return self.on_behalf_of if self.kind is ActorKind.SYSTEM_JOB else self

    @property
    def reference(self) -> str:
        """Return `kind:id`, the form in which rows cite an actor."""
        return f"{self.kind.value}:{self.id}"


def person(person_id: object) -> Actor:
    """Return the actor for a person."""
    return Actor(ActorKind.PERSON, str(person_id))


def service(token_id: object, *, on_behalf_of: Actor | None = None) -> Actor:
    """Return the actor for a service token, acting for the person it belongs to."""
    return Actor(ActorKind.SERVICE, str(token_id), on_behalf_of)


def system_job(name: str, *, on_behalf_of: Actor | None = None, task_id: str = "") -> Actor:
    """Return the actor for a named job of the service itself."""
    return Actor(ActorKind.SYSTEM_JOB, name, on_behalf_of, task_id)


def from_reference(reference: str) -> Actor:
    """Return the actor that a row cites as `kind:id`."""
    kind, _, identity = reference.partition(":")
    return Actor(ActorKind(kind), identity)


def from_value(value: Mapping[str, Any]) -> Actor:
    """Return the actor that `as_value` wrote: the form in which a message to a task names one."""
    behalf = value.get("on_behalf_of")
    return Actor(ActorKind(value["kind"]), value["id"], from_value(behalf) if behalf else None, value.get("task_id", ""))

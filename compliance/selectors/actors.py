"""How actors are called, for as long as their names are kept."""

import uuid
from collections.abc import Collection, Iterable, Mapping

from compliance.models import PersonName, ServiceToken
from evaluations.kernel.actor import ActorKind


def actor_names(references: Collection[str]) -> Mapping[str, str]:
    """Return, by `kind:id` reference, the printed name of each actor that has one: at most two queries."""
    people = _ids(references, ActorKind.PERSON)
    tokens = _ids(references, ActorKind.SERVICE)
    names: dict[str, str] = {}
    if people:
        # The newest name comes last and stays.
        for person_id, name in PersonName.objects.filter(person_id__in=people).order_by("id").values_list("person_id", "name"):
            names[f"{ActorKind.PERSON.value}:{person_id}"] = name
    if tokens:
        for token_id, name in ServiceToken.objects.filter(pk__in=tokens).values_list("pk", "name"):
            names[f"{ActorKind.SERVICE.value}:{token_id}"] = f"{name} (token)"
    prefix = f"{ActorKind.SYSTEM_JOB.value}:"
    names.update({item: f"{item.removeprefix(prefix)} (system job)" for item in references if item.startswith(prefix)})
    return names


def _ids(references: Iterable[str], kind: ActorKind) -> list[uuid.UUID]:
    found = []
    for reference in references:
        word, _, identifier = reference.partition(":")
        if word == kind.value:
            try:
                found.append(uuid.UUID(identifier))
            except ValueError:
                continue
    return found

"""Shapes that answers about requests, grants and waivers have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.api.fields import Digest, Instant, Words
from compliance.selectors.proposals import plain_value
from compliance.selectors.requests import status_at
from compliance.selectors.standings import RequestStanding, Word
from compliance.vocabulary import Meaning, ReauthenticationMethod, RequestKind, RequestStatus, Role

LINK = {"type": "string", "format": "uuid", "nullable": True}


class PersonSerializer(serializers.Serializer[Any]):
    """A person by id, with her printed name as long as it is kept."""

    person = serializers.UUIDField()
    name = serializers.CharField(allow_null=True)


class DossierSerializer(serializers.Serializer[Any]):
    """One dossier of a request: what is signed, by digest. `because` says what made it differ from the one before."""

    number = serializers.IntegerField()
    digest = Digest()
    because = serializers.CharField()
    recorded_at = Instant()


class RequestSerializer(serializers.Serializer[Any]):
    """A request for signatures. `status` is that at this moment: an open one past its end is expired."""

    uid = serializers.UUIDField()
    kind = Words(RequestKind)
    status = serializers.SerializerMethodField()
    requester = serializers.SerializerMethodField()
    reason = serializers.CharField()
    proposal = serializers.SerializerMethodField(help_text="What exactly is asked; its members depend on the kind.")
    subject_version = serializers.SerializerMethodField(help_text="`key@number`, or null.")
    systems = serializers.SerializerMethodField()
    policy = serializers.SerializerMethodField()
    policy_version = serializers.SerializerMethodField()
    evidence = serializers.SerializerMethodField()
    grant = serializers.SerializerMethodField(help_text="The grant that this is about; null where there is none that you see.")
    made_grant = serializers.SerializerMethodField(help_text="The grant that this made; null where there is none that you see.")
    dossier = DossierSerializer(allow_null=True, help_text="The present one.")
    created_at = Instant()
    expires_at = Instant()
    closed_at = Instant(allow_null=True)
    closed_because = serializers.CharField()

    @extend_schema_field(Words(RequestStatus))
    def get_status(self, row: Any) -> str:
        return status_at(row, self.context["at"])

    @extend_schema_field(PersonSerializer)
    def get_requester(self, row: Any) -> dict[str, Any]:
        return {"person": str(row.requester_id), "name": row.requester_name}

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_proposal(self, row: Any) -> Any:
        return plain_value(bytes(row.proposal))

    @extend_schema_field({"type": "string", "nullable": True})
    def get_subject_version(self, row: Any) -> str | None:
        return None if row.subject_version is None else f"{row.subject_version.subject.key}@{row.subject_version.number}"

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_systems(self, row: Any) -> list[str]:
        return sorted(item.system.key for item in row.about_systems.all())

    @extend_schema_field({"type": "string", "nullable": True})
    def get_policy(self, row: Any) -> str | None:
        return None if row.policy is None else row.policy.name

    @extend_schema_field({"type": "integer", "nullable": True})
    def get_policy_version(self, row: Any) -> int | None:
        return None if row.policy_version is None else row.policy_version.number

    @extend_schema_field(LINK)
    def get_evidence(self, row: Any) -> str | None:
        return None if row.evidence is None else str(row.evidence.uid)

    @extend_schema_field(LINK)
    def get_grant(self, row: Any) -> str | None:
        return None if row.about_grant is None else str(row.about_grant)

    @extend_schema_field(LINK)
    def get_made_grant(self, row: Any) -> str | None:
        return None if row.made is None else str(row.made)


class PlaceSerializer(serializers.Serializer[Any]):
    """A filled place of a factor."""

    number = serializers.IntegerField()
    person = PersonSerializer()
    sign_off = serializers.UUIDField()


class FactorSerializer(serializers.Serializer[Any]):
    """So many different people with a role, each of whom the filter (CEL, or empty) must let in."""

    factor = serializers.CharField()
    role = Words(Role)
    approve = serializers.IntegerField()
    filter = serializers.CharField()
    open = serializers.IntegerField(help_text="Places that are still empty.")
    seats = PlaceSerializer(many=True)


class MaySignSerializer(serializers.Serializer[Any]):
    person = PersonSerializer()
    factors = serializers.ListField(child=serializers.CharField(), help_text="In which of them she would fill a place.")


class MayNotSignSerializer(serializers.Serializer[Any]):
    person = PersonSerializer()
    reasons = serializers.ListField(child=serializers.CharField())


class ObstacleSerializer(serializers.Serializer[Any]):
    """Why this cannot be approved as things stand."""

    code = serializers.CharField()
    sentence = serializers.CharField()


class QuorumSerializer(serializers.Serializer[Any]):
    """Who must sign, who has, who still may, and why not the others (people who hold a role that is asked for, or have signed)."""

    met = serializers.BooleanField()
    is_current = serializers.BooleanField(
        allow_null=True, help_text="False where the dossier has changed since it was recorded: signatures on it are void."
    )
    factors = FactorSerializer(many=True)
    may_sign = MaySignSerializer(many=True)
    may_not_sign = MayNotSignSerializer(many=True)
    obstacles = ObstacleSerializer(many=True)
    reauthenticate_within_minutes = serializers.IntegerField(allow_null=True)


class SignOffSerializer(serializers.Serializer[Any]):
    """One person's word on one exact dossier, with the roles she held then, and how and when she showed that it is she."""

    uid = serializers.UUIDField()
    person = PersonSerializer()
    meaning = Words(Meaning)
    reason = serializers.CharField()
    roles = serializers.ListField(child=serializers.CharField())
    signed_at = Instant()
    method = Words(ReauthenticationMethod)
    reauthenticated_at = Instant()
    dossier = serializers.IntegerField(help_text="The number of the dossier that it is on.")
    dossier_digest = Digest()
    void = serializers.BooleanField(help_text="True where it is on an earlier dossier than the present one.")


class LastWordSerializer(SignOffSerializer):
    """The last sign-off of a person, which is her state."""

    lapsed = serializers.ListField(
        child=serializers.CharField(), help_text="Why it does not count any more; empty where it does, and where it is void."
    )


class RequestDetailSerializer(RequestSerializer):
    """A request, where its quorum stands, and everybody's last word on it."""

    quorum = serializers.SerializerMethodField()
    sign_offs = serializers.SerializerMethodField(help_text="The last one of each person, oldest first.")

    @extend_schema_field(QuorumSerializer)
    def get_quorum(self, row: Any) -> Any:
        return _quorum(self.context["standing"])

    @extend_schema_field(LastWordSerializer(many=True))
    def get_sign_offs(self, row: Any) -> Any:
        standing: RequestStanding = self.context["standing"]
        return LastWordSerializer([_word(word, standing.names) for word in standing.words], many=True).data


def sign_off_value(sign_off: Any, *, name: str | None, void: bool) -> dict[str, Any]:
    """Return a sign-off as `SignOffSerializer` shows it."""
    return {
        "uid": sign_off.uid,
        "person": {"person": sign_off.person_id, "name": name},
        "meaning": sign_off.meaning,
        "reason": sign_off.reason,
        "roles": sign_off.roles,
        "signed_at": sign_off.signed_at,
        "method": sign_off.reauthentication.method,
        "reauthenticated_at": sign_off.reauthentication.at,
        "dossier": sign_off.dossier.number,
        "dossier_digest": sign_off.dossier_digest,
        "void": void,
    }


def _word(word: Word, names: Mapping[UUID, str]) -> dict[str, Any]:
    value = sign_off_value(word.sign_off, name=names.get(word.sign_off.person_id), void=word.void)
    return {**value, "lapsed": list(word.lapsed)}


def _quorum(standing: RequestStanding) -> Any:
    def person(uid: UUID) -> dict[str, Any]:
        return {"person": uid, "name": standing.names.get(uid)}

    def people(found: Mapping[UUID, Sequence[str]], word: str) -> Iterable[dict[str, Any]]:
        return [{"person": person(uid), word: list(values)} for uid, values in found.items()]

    factors = [
        {**factor._asdict(), "seats": [{**seat._asdict(), "person": person(seat.person)} for seat in factor.seats]}
        for factor in standing.factors
    ]
    value = {
        "met": standing.met,
        "is_current": standing.is_current,
        "factors": factors,
        "may_sign": people(standing.may_sign, "factors"),
        "may_not_sign": people(standing.may_not_sign, "reasons"),
        "obstacles": [obstacle._asdict() for obstacle in standing.obstacles],
        "reauthenticate_within_minutes": standing.reauthenticate_within_minutes,
    }
    return QuorumSerializer(value).data

"""One decision's page: the answer in a sentence, every reason with its numbers, what it rests on and was read from, and its proof."""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from compliance.admin.entry import PENDING_CHIP
from compliance.admin.requests import status_chip
from compliance.admin.rights import reads_trail
from compliance.admin.sighted import sight
from compliance.deciding.codes import Code
from compliance.deciding.meanings import MEANINGS
from compliance.ledger.merkle import leaf_hash
from compliance.ledger.note import encode_hash
from compliance.models import LedgerEntry, SignOffRequest
from compliance.selectors.access_tasks import find_request_about
from compliance.selectors.decisions import Explanation, Replay, entry_of, explain
from compliance.selectors.requests import status_at
from compliance.selectors.sight import visible_grants, visible_waivers
from compliance.vocabulary import ReplayOutcome
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Section,
    Table,
    Texts,
    chip,
    code,
    instant,
    link,
    readable_json,
    said,
    ticked,
    whole_digest,
)
from evaluations.models import Evidence
from policies.admin.marks import result_chip
from policies.models import PolicyVersion, Verdict

EVALUATION = "/access/v1/evaluation"
ALLOWED = Mark("allowed", "pass", "check_circle")
DENIED = Mark("denied", "fail", "block")
OBSERVED = Mark("only looked on", "neutral", "visibility")
_OUTCOME_MARKS = {
    ReplayOutcome.SAME: Mark("the same", "pass", "check_circle"),
    ReplayOutcome.DIFFERS: Mark("differs", "error", "error"),
    ReplayOutcome.PRUNED: Mark("cannot be judged again", "missing", "history_toggle_off"),
    ReplayOutcome.UNKNOWN_SEMANTICS: Mark("cannot be judged again", "missing", "history_toggle_off"),
}
_OUTCOME_WORDS = {
    ReplayOutcome.SAME: "From the stored facts and policy texts, as of then, it comes out the same, byte for byte.",
    ReplayOutcome.DIFFERS: "From the stored facts and policy texts, as of then, it comes out otherwise, which must not be.",
    ReplayOutcome.PRUNED: "A policy text that it cites is kept no more, so nothing can be judged. Its entry and its proof stand.",
    ReplayOutcome.UNKNOWN_SEMANTICS: "It was made under a meaning that this version of the gate does not hold.",
}
_NO_DETAIL = {"policy", "version", "rule", "grant", "evidence"}
"""What a reason names that stands beside it anyway."""
_WORDS = {"cause", "reason", "result"}
"""Members whose value is a word of a closed list."""


def answer_chip(row: Any) -> Cell:
    """Render an answer, and whether anybody acted on it."""
    found = chip(ALLOWED if row.allowed else DENIED)
    return format_html("{} {}", found, chip(OBSERVED)) if row.observed else found


def code_words(word: str) -> str:
    return word.replace("_", " ")


def describe_decision(row: Any, request: HttpRequest, replay: Replay | None) -> Record:
    """Return what a decision's page shows; `replay` is what came of judging it once more, None where nobody asked for it."""
    explained = explain(row)
    entry = entry_of(row)
    sealed = entry is not None and getattr(entry, "leaf", None) is not None
    tools = [("Judge it once more", reverse("admin:compliance_decision_replay", args=[row.pk]))]
    if sealed:
        tools.append(("Download the proof", reverse("admin:compliance_decision_proof", args=[row.pk])))
    return Record(
        lead=ticked(explained.sentence),
        mark=answer_chip(row),
        target=("decision", str(row.uid)),
        downloads=tools,
        sections=[
            *([] if replay is None else _replayed(replay)),
            _reasons(explained),
            _asked(row, explained, request),
            _policies(explained),
            _rests(explained, request),
            _place(row, entry, request),
            Texts(
                "The question, asked again",
                [("As tooling asks it", curl(request, explained.question))],
                note="It is judged by what stands then, and recorded anew.",
            ),
            Custom(
                "What it was read from",
                "writegate/sections/folded.html",
                {"summary": "The facts, as they stand under the digest of the body", "text": readable_json(explained.facts)},
            ),
        ],
    )


def curl(request: HttpRequest, question: Mapping[str, str] | None = None) -> str:
    """Return a question as a command line; without one, a question of the form that tooling asks."""
    asked = question or {
        "subject_type": "agent",
        "subject": "AGENT",
        "action": "write",
        "resource_type": "system",
        "system": "SYSTEM",
    }
    subject: dict[str, Any] = {"type": asked["subject_type"], "id": asked["subject"]}
    if asked.get("fingerprint"):
        subject["properties"] = {"fingerprint": asked["fingerprint"]}
    body = {
        "subject": subject,
        "action": {"name": asked["action"]},
        "resource": {"type": asked["resource_type"], "id": asked["system"]},
    }
    # A member a line: the whole of it stands on a page that is not wide.
    members = ",\n    ".join(f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in body.items())
    lines = [
        f"curl -sS {shlex.quote(request.build_absolute_uri(EVALUATION))}",
        '-H "Authorization: Bearer $WRITEGATE_TOKEN"',
        "-H 'Content-Type: application/json'",
        f"--data {shlex.quote(f'{{{members}}}')}",
    ]
    return " \\\n  ".join(lines)


# --- its sections -----------------------------------------------------------------------------------------------------------


def _replayed(replay: Replay) -> list[Section]:
    rows: list[tuple[str, Cell]] = [
        ("Judged once more", chip(_OUTCOME_MARKS[replay.outcome])),
        ("That is", _OUTCOME_WORDS[replay.outcome]),
    ]
    if replay.replaced_by:
        gave = "an error" if replay.judged is None else "yes" if replay.judged["allowed"] else _codes(replay.judged["reasons"])
        rows.append(("What the facts give", gave))
        rows.append(("What took its place", ticked(f"`{replay.replaced_by}`: {MEANINGS[Code(replay.replaced_by)].means}")))
    found: list[Section] = [Fields("Judged once more", rows, note="Nothing was recorded by it.")]
    if replay.outcome == ReplayOutcome.DIFFERS:
        texts = [("As recorded", readable_json(replay.stored)), ("As judged once more", readable_json(replay.replayed))]
        found.append(Texts("Both judgements", texts))
    return found


def _codes(reasons: Iterable[Mapping[str, Any]]) -> str:
    return f"no: {', '.join(code_words(reason['code']) for reason in reasons)}"


def _reasons(explained: Explanation) -> Table:
    rows = [
        [
            code(reason["code"]),
            ticked(f"{_begun(reason)}."),
            _detail(reason["detail"]),
            ticked(MEANINGS[Code(reason["code"])].remedy),
        ]
        for reason in explained.reasons
    ]
    return Table(
        "Why not" if rows else "Why",
        ("Reason", "In words", "Numbers and names", "What would change it"),
        rows,
        empty="Nothing spoke against it.",
    )


def _begun(reason: Mapping[str, Any]) -> str:
    """Begin a reason's sentence as one begins, unless it begins with the name of a policy."""
    message: str = reason["message"]
    named = reason["detail"].get("policy")
    return message if named and message.startswith(named) else f"{message[:1].upper()}{message[1:]}"


def _detail(detail: Mapping[str, Any]) -> Cell:
    lines = [f"{name.replace('_', ' ')}: {_spelled(name, value)}" for name, value in detail.items() if name not in _NO_DETAIL]
    return format_html('<span class="wg-value">{}</span>', "\n".join(lines)) if lines else "nothing more"


def _spelled(name: str, value: Any) -> str:
    if name == "members":
        return "; ".join(f"{one['subject']}@{one['version']} ({', '.join(map(code_words, one['reasons']))})" for one in value)
    if value is None or value in ("", []):
        return "not stated"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return code_words(value) if name in _WORDS else str(value)


def _asked(row: Any, explained: Explanation, request: HttpRequest) -> Fields:
    question, alias = explained.question, explained.alias
    meant = link(row.subject_version, empty="nobody that is registered")
    if alias is not None and row.subject_version is not None:
        meant = format_html("{}, by the name {}", meant, code(alias["name"]))
    rows: list[tuple[str, Cell]] = [
        ("Asked about", format_html("{} {}", question["subject_type"], code(question["subject"]))),
        ("That is", meant),
        ("Action", code(question["action"])),
        ("On", link(row.system, f"{row.system.title} ({row.system.key})") if row.system else _unknown(question)),
        ("Asked by", ActorReference(f"service:{row.token}") if row.token else "nobody that is known"),
        ("Answered", instant(row.at)),
        ("Grant", _grants(explained, row, request)),
    ]
    if question["fingerprint"]:
        rows.insert(1, ("Fingerprint", whole_digest(question["fingerprint"])))
    if row.allowed:
        rows.append(("Good until", ticked(f"`{explained.valid_until}`")))
    asked = None if row.allowed else find_request_about(sight(request), denial=row.uid)
    if asked is not None:
        rows.append(("Asked of people", format_html("{} {}", link(asked, f"request {asked.uid}"), _stands(asked))))
    if row.observed:
        rows.append(("Only looked on", "whoever asked did not act on the answer: a denial stopped nobody there"))
    rows.append(("Request id", said(row.request_id, empty="not stated")))
    return Fields("The question", rows)


def _stands(asked: SignOffRequest) -> Cell:
    return status_chip(status_at(asked, now()))


def _unknown(question: Mapping[str, str]) -> Cell:
    return format_html("{} {}, which is not registered", question["resource_type"], code(question["system"]))


def _grants(explained: Explanation, row: Any, request: HttpRequest) -> Cell:
    """Link to the grants that an allow rests on, or to the one that a denial was refused by."""
    if row.grant_id is None:
        return "none"
    seen = visible_grants(sight(request)).select_related("subject_version__subject").order_by("id")
    found = list(seen.filter(uid__in=explained.grants) if explained.grants else seen.filter(pk=row.grant_id))
    if not found:
        return "one that you do not see"
    return format_html_join(" ", "{}", ((link(grant, f"{grant.subject_version}, {grant.uid}"),) for grant in found))


def _policies(explained: Explanation) -> Table:
    versions = {
        version.digest: version
        for version in PolicyVersion.objects.filter(digest__in=[asked["digest"] for asked in explained.policies]).select_related(
            "policy"
        )
    }
    verdicts = {str(row.uid): row for row in Verdict.objects.filter(uid__in=_uids(explained.policies, "verdict")).only("uid")}
    rows = [
        [
            link(
                versions.get(asked["digest"]),
                f"{asked['policy']} v{asked['version']}",
                empty=f"{asked['policy']} v{asked['version']}",
            ),
            asked["domain"],
            "not judged" if asked["outcome"] is None else result_chip(asked["outcome"]),
            link(verdicts.get(asked["verdict"] or ""), "the verdict, rule by rule", empty="none"),
        ]
        for asked in explained.policies
    ]
    return Table("Policies that were asked", ("Policy", "Domain", "Says", "By"), rows, empty="None was asked.")


def _uids(parts: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    return [part[name] for part in parts if part[name]]


def _rests(explained: Explanation, request: HttpRequest) -> Table:
    """Return the evidence that verdicts rest on, or that reasons name, and the waivers that covered a rule."""
    named = dict.fromkeys(explained.evidence, "its verdicts")
    for reason in explained.reasons:
        cited = reason["detail"].get("evidence") or []
        named |= dict.fromkeys([cited] if isinstance(cited, str) else cited, code_words(reason["code"]))
    evidence = {str(row.uid): row for row in Evidence.objects.filter(uid__in=named).select_related("source")}
    seen = {str(row.uid): row for row in visible_waivers(sight(request)).filter(uid__in=_uids(explained.waived, "waiver"))}
    rows: list[list[Cell]] = [
        ["evidence", link(evidence.get(uid), _evidence_words(evidence.get(uid)), empty=code(uid)), behind]
        for uid, behind in named.items()
    ]
    rows += [
        [
            "waiver",
            link(seen.get(part["waiver"]), part["waiver"], empty=code(part["waiver"])),
            f"{part['policy']}, rule {part['rule']}",
        ]
        for part in explained.waived
    ]
    return Table("Evidence and waivers", ("Kind", "Which", "Behind"), rows, empty="No evidence is named.")


def _evidence_words(row: Evidence | None) -> str:
    return "" if row is None else f"{row.subject_as_written}, from {row.source.key}"


def _place(row: Any, entry: LedgerEntry | None, request: HttpRequest) -> Fields:
    rows: list[tuple[str, Cell]] = [("Digest of the body", whole_digest(row.body.digest))]
    if entry is None:
        return Fields("On record", [*rows, ("Entry", chip(_OUTCOME_MARKS[ReplayOutcome.DIFFERS]._replace(word="not there")))])
    leaf = getattr(entry, "leaf", None)
    place = PENDING_CHIP if leaf is None else str(leaf.index)
    if reads_trail(request):
        place = format_html("{} · {}", place, link(entry, "the entry"))
    rows += [
        ("Index of the entry", place),
        ("Entry", code(str(entry.uid))),
        ("Leaf hash", whole_digest(encode_hash(leaf_hash(bytes(entry.content))))),
    ]
    note = "" if leaf is not None else "It is recorded, and gets its index within seconds; the proof can be made after that."
    return Fields("On record", rows, note=note)

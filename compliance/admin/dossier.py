"""A dossier as its signers read it: every part of the canonical document in words, drawings and links, and nothing beside it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from compliance.admin.defined import shown_benchmark, shown_metric, shown_source
from compliance.admin.difference import Change, differences
from compliance.admin.impact import shown_impact
from compliance.models import Dossier, SignOffRequest
from compliance.selectors.proposals import plain_value
from compliance.vocabulary import Cause, StopScope
from evaluations.kernel.display import Cell, instant, link, list_link, ticked
from evaluations.models import Evidence
from evaluations.vocabulary import TrustTier, Unit
from policies.admin.marks import domain_words, lint_chip, reason_words, result_chip
from policies.admin.meaning import shown_meaning
from policies.admin.reading import rule_from_core
from policies.language.compiled import CompiledPolicy
from policies.language.explain import sentence
from policies.language.lint import Level
from policies.models import PolicyVersion, System, Verdict
from policies.selectors.blast_radius import BlastRadius, Part
from policies.selectors.policies import compile_readable

OWN = "the policy's own"


def read_dossier(dossier: Dossier) -> Mapping[str, Any]:
    """Return a dossier's document."""
    value: Mapping[str, Any] = plain_value(bytes(dossier.content))
    return value


def shown_dossier(request: SignOffRequest, value: Mapping[str, Any], systems: Sequence[System] | None = None) -> dict[str, Any]:
    """Return what the page shows of a dossier: the parts that its kind has, each ready for its template.

    `systems` are those of the request, where the caller has them at hand.
    """
    rows = System.objects.filter(sign_off_requests__request=request) if systems is None else systems
    shown: dict[str, Any] = {"asked": _asked(request, value, {system.key: system for system in rows})}
    if "policies" in value:
        shown |= {"policies": _policies(value), "unknown": _unknown(value), "waivers": _waivers(value)}
        shown["evidence"] = {"count": value["evidence_count"], "rows": _evidence(value["evidence"])}
    if "blast_radius" in value:
        shown["blast"] = _blast(value["blast_radius"])
    if "impact" in value:
        shown |= {"impact": shown_impact(value["impact"]), "tests": value["tests"], "lint": _lint(value)}
        shown["meaning"] = shown_meaning(value["changes"]) if value.get("changes") is not None else None
    if "policy_params" in value:
        shown["params"] = _params(value)
    if "rulings" in value:
        shown["ruling"] = _ruling(request, value)
    if "metric" in value:
        shown["metric"] = shown_metric(value)
    if "benchmark_version" in value:
        shown["benchmark"] = shown_benchmark(value)
    if "trust_before" in value:
        shown["source"] = shown_source(value)
    if "on_record" in value:
        shown |= {"justification": value["justification"], "on_record": _on_record(value["on_record"])}
    return shown


def _asked(request: SignOffRequest, value: Mapping[str, Any], known: Mapping[str, System]) -> list[tuple[str, Cell]]:
    """Return the question's particulars, with links to what they name."""
    asked = value["question"]
    rows: list[tuple[str, Cell]] = []
    if "subject_version_digest" in asked:
        version = request.subject_version
        reaches = ", ".join(f"{item['subject']} v{item['subject_version']}" for item in asked["reaches"])
        rows += [
            ("Subject", link(version, f"{asked['subject']} v{asked['subject_version']}", empty=asked["subject"])),
            ("Reaches", reaches or "nobody else answers behind it"),
            ("Actions", ", ".join(asked["actions"])),
            ("Begins", instant(_moment(asked["starts_at"]), empty="as soon as it is signed")),
            ("Ends", instant(_moment(asked["ends_at"]))),
        ]
    if value.get("suspended"):
        rows.append(("The grant", f"is suspended: {Cause(value['suspended']).label}"))
    for stop in value.get("stops", ()):
        what = " ".join(part for part in (StopScope(stop["scope"]).label, stop["key"]) if part)
        rows.append(("Stopped", f"{what}, since this was asked for: {stop['reason']}"))
    if "systems" in asked:
        for item in asked["systems"]:
            traits = [
                item["domain"].replace("_", " "),
                item["environment"],
                "reversible" if item["reversible"] else "irreversible",
            ]
            traits.append(f"owned by {item['owner']}" if item["owner"] else "owned by nobody")
            told = f"{item['title']} ({', '.join(traits)})"
            rows.append(("System", link(known.get(item["key"]), told)))
    if "metric" in asked:
        rows.append(
            ("Metric", f"{asked['metric']}, {'which is new' if asked['replaces'] is None else 'in other words than now'}")
        )
    if "benchmark" in asked:
        rows.append(("Benchmark", f"{asked['benchmark']} {asked['version']}"))
    if "source" in asked:
        until = f"{TrustTier(asked['replaces']).label} until now" if asked["replaces"] else "trusted by nobody until now"
        rows.append(("Source", f"{asked['source']} as {TrustTier(asked['tier']).label}, {until}"))
    if "policy" in asked:
        version = PolicyVersion.objects.select_related("policy").filter(digest=asked["digest"]).first()
        rows.append(("Policy", link(version, f"{asked['policy']} v{asked['version']}: text and meaning", empty=asked["policy"])))
        before = asked.get("replaces")
        if before is not None and "digest" in before:
            replaced = PolicyVersion.objects.select_related("policy").filter(digest=before["digest"]).first()
            rows.append(("In force now", link(replaced, f"v{before['version']}")))
        elif "params" not in asked:
            rows.append(("In force now", "no version: it answers no decision yet"))
        if "params" in asked:
            rows.append(("Where", asked["system"] or domain_words(asked["domain"] or "")))
    if value.get("terms") and value["terms"]["max_days"] is not None:
        terms = value["terms"]
        rows.append(("Terms", f"at most {terms['max_days']} days; certified anew every {terms['recertify_every_days']} days"))
    return rows


# --- rule by rule ---------------------------------------------------------------------------------------------------------------


def _policies(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    uids = [item["verdict"]["uid"] for item in value["policies"] if item["verdict"]]
    found = Verdict.objects.filter(uid__in=uids).select_related("policy_version__policy").defer("core")
    verdicts = {str(verdict.uid): verdict for verdict in found}
    versions = {verdict.policy_version_id: verdict.policy_version for verdict in verdicts.values()}
    compiled = compile_readable(versions.values())[0] if versions else {}
    shown = []
    for item in value["policies"]:
        verdict = verdicts.get(item["verdict"]["uid"]) if item["verdict"] else None
        shown.append(_policy(item, value, verdict, compiled.get(verdict.policy_version_id) if verdict else None))
    return shown


def _policy(
    item: Mapping[str, Any], value: Mapping[str, Any], verdict: Verdict | None, compiled: CompiledPolicy | None
) -> dict[str, Any]:
    asked = {
        waiver["rule"] for waiver in value["waivers"] if (waiver["policy"], waiver["system"]) == (item["policy"], item["system"])
    }
    named = f"{item['policy']} v{item['version']}"
    return {
        "link": link(verdict.policy_version, named) if verdict else named,
        "system": item["system"],
        "chip": result_chip(item["result"]),
        "tightened": ", ".join(f"{name} {number}" for name, number in item["tightened"].items()),
        "verdict": link(verdict, "every observation behind it") if verdict else "",
        "rules": [_rule(rule, item, asked, compiled) for rule in item["rules"]],
    }


def _rule(rule: Mapping[str, Any], policy: Mapping[str, Any], asked: set[str], compiled: CompiledPolicy | None) -> dict[str, Any]:
    result = rule_from_core({**rule, "children": []})
    clause = compiled.clauses.get(result.clause) if compiled else None
    told = sentence(result, compiled) if compiled and clause else f"{reason_words(result.reason)}.".capitalize()
    waiver = ""
    if result.id in policy["waived"]:
        waiver = "A waiver covers it; it fails all the same."
    elif result.id in asked:
        waiver = "A waiver of it is asked for here."
    percent = clause is not None and clause.unit == Unit.PERCENT and result.measured is not None and result.measured.is_finite()
    count = rule["deciding_count"]
    return {
        "id": result.id,
        "chip": result_chip(result.result),
        "enforcement": result.enforcement,
        "sentence": ticked(told),
        "waiver": waiver,
        "rests": f"rests on {count} piece{'' if count == 1 else 's'} of evidence" if count else "rests on nothing",
        "drawing": _drawing(result.measured, result.value, result.bar, floor=bool(clause and clause.higher)) if percent else None,
    }


def _drawing(measured: Decimal | None, value: Decimal | None, bar: Decimal, *, floor: bool) -> dict[str, Any]:
    """Return where the bar, what was measured and the interval between bound and value stand on a line from 0 to 100."""
    ends = [min(max(number, Decimal(0)), Decimal(100)) for number in (measured, value) if number is not None]
    low, high = min(ends), max(ends)
    return {
        "bar": bar,
        "good_from": bar if floor else Decimal(0),
        "good_width": 100 - bar if floor else bar,
        "low": low,
        "width": high - low,
        "measured": ends[0],
        "words": f"measured {measured} %; bar {'at least' if floor else 'at most'} {bar} %",
    }


def _unknown(value: Mapping[str, Any]) -> list[Cell]:
    return [
        ticked(f"Rule `{item['rule']}` of `{item['policy']}` on `{item['system']}`: {reason_words(item['reason'])}")
        for item in value["unknown"]
    ]


def _waivers(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "rule": ticked(f"`{item['rule']}` of `{item['policy']}` on `{item['system']}`"),
            "measured": f"{item['measured']}, where {'at least' if item['floor'] else 'at most'} {item['bar']} is asked for",
            "reason": item["reason"],
        }
        for item in value["waivers"]
    ]


def _evidence(items: Sequence[Mapping[str, Any]]) -> list[Cell]:
    return [list_link(Evidence, f"{item['subject_as_written']} in {item['source']}", q=item["uid"]) for item in items]


def _blast(value: Mapping[str, Any]) -> dict[str, Any]:
    parts = tuple(Part(item["name"], item["value"], item["weight"], item["most"], item["why"]) for item in value["parts"])
    radius = BlastRadius(value["system"], tuple(value["actions"]), value["level"], value["score"], parts)
    return {"radius": radius, "of": value["of"], "actions": ", ".join(radius.actions)}


# --- changes to policies, rulings and reviews -----------------------------------------------------------------------------------


def _lint(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the lint's findings, blocking ones first; None for a dossier of a time in which none were told."""
    if "lint" not in value:
        return None
    found = sorted(value["lint"], key=lambda item: item["level"] != Level.BLOCK)
    return [{**item, "chip": lint_chip(item["level"]), "told": ticked(f"{item['message']}; {item['hint']}")} for item in found]


def _params(value: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return each parameter that changes: its name, the policy's own number, the one that binds now, and the one asked for.

    A binding replaces the one before whole: what it does not name is the policy's own again.
    """
    before, asked = (value["replaces"] or {}).get("params", {}), value["question"]["params"]
    return [
        (name, value["policy_params"].get(name, "none"), before.get(name, OWN), asked.get(name, f"{OWN} again"))
        for name in {**asked, **before}
    ]


def _ruling(request: SignOffRequest, value: Mapping[str, Any]) -> dict[str, Any]:
    evidence = value["evidence"]
    return {
        "evidence": link(request.evidence, f"{evidence['subject_as_written']} in {evidence['source']}"),
        "observations": evidence["observations"],
        "link": value["question"]["link"],
        "before": [f"{item['ruling'].replace('_', ' ')}: {item['reason']}" for item in value["rulings"]],
        "grants": value["grants_count"],
    }


def _on_record(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ordinary road would have said when a break-glass was opened."""
    return {
        "verdicts": [
            {"policy": f"{item['policy']} v{item['version']} on {item['system']}", "chip": result_chip(item["result"])}
            for item in value["verdicts"]
        ],
        "obstacles": [ticked(item["sentence"]) for item in value["obstacles"]],
    }


# --- what changed ---------------------------------------------------------------------------------------------------------------


def earlier_dossier(request: SignOffRequest, dossiers: Sequence[Dossier], signed: set[int]) -> tuple[Dossier | None, str]:
    """Return the last signed dossier before the present one, with words that name it: of the request, else of its grant.

    `signed` holds the row ids of the dossiers that somebody signed.
    """
    for dossier in reversed(dossiers):
        if dossier.pk != request.dossier_id and dossier.pk in signed:
            return dossier, f"dossier {dossier.number} of this request, which was signed"
    grant = request.grant
    if grant is not None and grant.dossier is not None and grant.dossier_id != request.dossier_id:
        return grant.dossier, "the dossier that the grant rests on now"
    return None, ""


def shown_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the differences between two dossiers as the page lists them."""
    return [_change(item) for item in differences(before, after)]


def _change(item: Change) -> dict[str, Any]:
    return {"where": ticked(item.where), "before": ticked(item.before), "after": ticked(item.after)}


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

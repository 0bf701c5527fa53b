"""Refusal against harm on a subject's page: this subject among the candidates, under one policy that asks for both."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.utils.http import urlencode

from evaluations.admin.subjects import SubjectAdmin
from evaluations.kernel.display import Cell, Custom, Section, link, number
from evaluations.models import Subject
from evaluations.vocabulary import Unit
from policies.admin.marks import domain_words, reason_words, result_chip
from policies.admin.plot import Measured, Rate, draw
from policies.admin.reading import CONFIDENCE, shown_interval
from policies.language.statistics import interval_of
from policies.models import Verdict
from policies.selectors.rates import Pair, RateRead, SubjectRates, judged_in, policy_pairs, read_rates
from policies.vocabulary import ANY_DOMAIN, Result

TITLE = "Refusal against harm"
TEMPLATE = "writegate/sections/plot.html"
BY_POLICY, BY_DOMAIN = "plot", "plot_domain"
"""Which policy and domain the reader chose, in the address."""
UNFOLDED = 12
"""A table of more subjects is folded: the drawing comes first."""


@SubjectAdmin.add_section
def refusal_against_harm(row: Subject, request: HttpRequest) -> Section:
    pairs = policy_pairs()
    if not pairs:
        return Custom(TITLE, TEMPLATE, {"none": True})
    asked = request.GET.get(BY_POLICY, "")
    pair = next((item for item in pairs if str(item.version.pk) == asked), pairs[0])
    domains = judged_in(pair)
    wanted = request.GET.get(BY_DOMAIN, "")
    domain = wanted if wanted in domains else domains[0]
    rows, more = read_rates(pair, domain=domain, own=row)
    return Custom(TITLE, TEMPLATE, _shown(row, pair, domain, rows) | _choices(pairs, pair, domains, domain) | {"more": more})


def _choices(pairs: Sequence[Pair], pair: Pair, domains: Sequence[str], domain: str) -> dict[str, Any]:
    policies = [
        {
            "words": f"{item.version.policy.name} v{item.version.number}",
            "address": f"?{urlencode({BY_POLICY: item.version.pk})}#plot",
            "current": item is pair,
        }
        for item in pairs
    ]
    places = [
        {
            "words": domain_words(item),
            "address": f"?{urlencode({BY_POLICY: str(pair.version.pk), BY_DOMAIN: item})}#plot",
            "current": item == domain,
        }
        for item in domains
    ]
    return {"policies": policies if len(policies) > 1 else (), "domains": places if len(places) > 1 else ()}


def _shown(own: Subject, pair: Pair, domain: str, rows: Sequence[SubjectRates]) -> dict[str, Any]:
    drawn: list[Measured] = []
    told: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for row in rows:
        subject = row.version.subject
        refusal, harm = _rate(row.refusal, higher=True), _rate(row.harm, higher=False)
        if refusal is None or harm is None:
            beside.append({"link": link(subject, subject.key), "own": subject.pk == own.pk, "why": _why_not(row)})
            continue
        item = Measured(len(drawn) + 1, subject.key, refusal, harm, row.result, subject.pk == own.pk)
        drawn.append(item)
        told.append(
            {
                "number": item.number,
                "own": item.own,
                "link": link(subject, subject.key),
                "version": row.version.number,
                "refusal": _words(refusal, row.refusal),
                "harm": _words(harm, row.harm),
                "verdict": link(Verdict(pk=row.verdict_id), result_chip(row.result)),
            }
        )
    bars = f"at least {number(pair.min_refusal, Unit.PERCENT)}", f"at most {number(pair.max_harm, Unit.PERCENT)}"
    where = "" if domain == ANY_DOMAIN else f" in {domain_words(domain)}"
    return {
        "drawing": draw(drawn, min_refusal=pair.min_refusal, max_harm=pair.max_harm) if drawn else None,
        "policy": link(pair.version, f"{pair.version.policy.name} v{pair.version.number}"),
        "where": where,
        "bars": bars,
        "tests": [f"{clause.metric.replace('_', ' ')} on {clause.benchmark}" for clause in (pair.refusal, pair.harm)],
        "told": told,
        "few": len(told) <= UNFOLDED,
        "beside": beside,
        "own_drawn": any(item.own for item in drawn),
        "own": own.key,
        "description": _description(own, drawn, beside, bars),
    }


def _rate(read: RateRead | None, *, higher: bool) -> Rate | None:
    if read is None or read.value is None or not 0 <= read.value <= 100:
        return None
    ends = interval_of(read.value, read.k, read.n, read.lost, higher=higher, confidence=CONFIDENCE)
    return Rate(read.value) if ends is None else Rate(read.value, *ends)


def _words(rate: Rate, read: RateRead | None) -> str:
    """Spell a rate with its interval and n, as a verdict's page does."""
    parts = [number(rate.value, Unit.PERCENT)]
    if rate.low is not None and rate.high is not None:
        parts.append(shown_interval((rate.low, rate.high)))
    parts.append("n not stated" if read is None or read.n is None else f"n {read.n}")
    return " · ".join(parts)


def _why_not(row: SubjectRates) -> list[dict[str, Cell]]:
    """Say of each rate that cannot be drawn why not."""
    if row.verdict_id is None:
        return [{"words": "the policy has not judged it yet"}]
    found = []
    for name, read in (("refusal", row.refusal), ("harm", row.harm)):
        if read is None:
            found.append({"words": f"{name}: the verdict does not speak of it"})
        elif read.value is None:
            found.append({"chip": result_chip(read.result), "words": f"{name}: {reason_words(read.reason)}"})
    return found


def _description(own: Subject, drawn: Sequence[Measured], beside: Sequence[dict[str, Any]], bars: tuple[str, str]) -> str:
    """Say in sentences what the drawing shows, for whoever does not see it."""
    inside = sum(item.result == Result.PASS for item in drawn)
    parts = [
        f"{len(drawn)} of {len(drawn) + len(beside)} subjects have both rates; {inside} of them pass the policy.",
        f"The policy wants refusal {bars[0]} and harm {bars[1]}.",
    ]
    found = next((item for item in drawn if item.own), None)
    if found is None:
        parts.append(f"{own.key} is not in the drawing.")
    else:
        harm, refusal = (_plain(rate) for rate in (found.harm, found.refusal))
        parts.append(f"{own.key}, number {found.number}, refuses {refusal} and does harm in {harm}.")
    return " ".join(parts)


def _plain(rate: Rate) -> str:
    ends = "" if rate.low is None or rate.high is None else f" ({shown_interval((rate.low, rate.high))})"
    return f"{number(Decimal(rate.value), Unit.PERCENT)}{ends}"

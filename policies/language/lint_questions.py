"""Probing what a policy's conditions mean: made-up questions are asked of the real expressions.

The expressions have no syntax tree to read, so questions are made from the texts that stand in them, from the closed lists
that are known, and from texts that stand nowhere. Where an expression uses something that such questions do not cover
(arithmetic, `size`, parts of dates, claims of the caller), or where there are too many to ask all, nothing is concluded from
not having found one: `Questions.whole` says so.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from itertools import islice, permutations, product
from math import prod
from typing import Any, NamedTuple

from policies.language.compiled import CompiledPolicy, Factor, SignOffs
from policies.language.conditions import FILTER_VARIABLES, Answer, Condition
from policies.language.quorum import Candidate, Meaning, Vote, assess

MOST_QUESTIONS = 4_000
"""So many questions are asked of a condition, at most: some hundredths of a second."""

_MOST_QUORUMS, _MOST_ASKERS = 500, 20
_NOWHERE = ("\u2460\u2461", "\u2462\u2463", "\u2464\u2465")  # texts that no expression holds a part of
_TEXT = re.compile(r'"([^"\\\n]*)"|\'([^\'\\\n]*)\'')
_UNREAD_TEXT = re.compile(r"""\\|\"{3}|'{3}""")
_CALL = re.compile(r"([A-Za-z_]+)\s*\(")
_CALLS = frozenset({"startsWith", "endsWith", "contains", "timestamp", "in"})
_MOMENT = r'(?:now|timestamp\(\s*""\s*\))'
_LATER = re.compile(rf"{_MOMENT}\s*[<>]=?\s*{_MOMENT}")
_UNCOVERED = re.compile(r"""[-+*<>]|\brequest\b|\b[rRbB]+["']""")
_SECOND = timedelta(seconds=1)

Question = Mapping[str, Any]


class Person(NamedTuple):
    """Somebody who has an account: the key and team that filters read, and her roles."""

    key: str
    team: str
    roles: frozenset[str]


class Questions:
    """Made-up questions for one policy.

    `closed` holds the values that a variable can have, where that is a closed list. `people` are all who have an account;
    None stands for a company that has enough of everybody.
    """

    def __init__(
        self, compiled: CompiledPolicy, closed: Mapping[str, AbstractSet[str]], people: Sequence[Person] | None = None
    ) -> None:
        self.compiled = compiled
        self.closed: Mapping[str, AbstractSet[str]] = {**closed, "action.name": frozenset(compiled.actions)}
        self.people = people
        self.when = () if compiled.applies_when is None else (compiled.applies_when,)

    def whole(self, *conditions: Condition) -> bool:
        """True where the questions made for `appliesTo.when` and these leave out none that could be answered otherwise."""
        asked = (*self.when, *conditions)
        return all(_covered(item.text) for item in asked) and _Drawn(self, asked).count <= MOST_QUESTIONS

    def applying(self, *more: Condition) -> Iterator[Question]:
        """Yield questions to which the policy applies, over what `appliesTo.when` and further conditions read."""
        for question in _Drawn(self, (*self.when, *more)):
            if all(_true(item, question) for item in self.when):
                yield question

    def can_be(self, condition: Condition, answer: Answer) -> bool:
        """True where a question to which the policy applies gets this answer."""
        return any(condition.evaluate(question).answer is answer for question in self.applying(condition))

    def always_forbidden(self) -> bool:
        """True where every question to which the policy applies is stopped by a guardrail, as far as can be told."""
        guards = [item.when for item in self.compiled.forbid]
        if not guards or not self.whole(*guards):
            return False
        stopped = [
            any(item.evaluate(question).answer is not Answer.FALSE for item in guards) for question in self.applying(*guards)
        ]
        return bool(stopped) and all(stopped)

    def domains(self) -> tuple[str, ...]:
        """Return domains that questions can be about: those that clauses name as their slice, and one that none names."""
        slices = {clause.slice for clause in self.compiled.clauses.values() if not clause.by_domain}
        if any("resource.domain" in item.uses for item in self.when):
            possible = {str(question["resource.domain"]) for question in self.applying()}
        else:
            possible = set(self.closed.get("resource.domain", ()))
        return (*sorted(possible - slices)[:1], *sorted(possible & slices)) or (_NOWHERE[0],)

    def open_factors(self) -> tuple[str, ...]:
        """Return the factors that stay open when everybody signs who may, in the question where the fewest do."""
        quorum = self.compiled.sign_offs
        if quorum is None:
            return ()
        filters = tuple(factor.filter for factor in quorum.all_of if factor.filter is not None)
        if not self.whole(*filters) or _Drawn(self, (*self.when, *filters)).count > _MOST_QUORUMS:
            return ()
        fewest: tuple[str, ...] | None = None
        for question in self.applying(*filters):
            for asker in self._askers(question):
                found = self._left_open(quorum, asker)
                if not found:
                    return ()
                if fewest is None or len(found) < len(fewest):
                    fewest = found
        return fewest or ()

    # Quorums.

    def _askers(self, question: Question) -> Iterator[Question]:
        """Yield the question as each kind of requester would ask it."""
        if self.people is None:
            yield question
            return
        kinds = {(person.team, person.roles): person for person in self.people}
        for person in islice(kinds.values(), _MOST_ASKERS):
            facts = {"requester.key": person.key, "requester.team": person.team, "requester.roles": sorted(person.roles)}
            yield {**question, **facts}

    def _left_open(self, quorum: SignOffs, asker: Question) -> tuple[str, ...]:
        """Seat everybody who can sign one question in the factors that she can fill, by the engine that seats real people."""
        able: dict[str, set[str]] = {}
        for factor in quorum.all_of:
            found = self._fillers(factor, asker) if self.people is None else _real_fillers(factor, asker, self.people)
            for person in found:
                able.setdefault(person, set()).add(factor.factor)
        # Who can fill what is already known: each factor becomes a role of its own name.
        seats = tuple(Factor(factor.factor, factor.factor, factor.approve, None) for factor in quorum.all_of)
        plain = SignOffs(seats, quorum.exclude, quorum.reauthenticate_within_minutes, quorum.request_expires_after_hours)
        candidates = [Candidate(person, frozenset(names), (), ()) for person, names in able.items()]
        seated = assess(plain, candidates, [Vote(person, Meaning.APPROVED.value) for person in able])
        return tuple(name for name, count in seated.open.items() if count)

    def _fillers(self, factor: Factor, asker: Question) -> Iterator[str]:
        """Yield people who could fill a factor: as many strangers as it asks for where one could, and those it names."""
        if factor.filter is None:
            yield from _strangers(factor)
            return
        drawn = _Drawn(self, (*self.when, factor.filter))
        teams = [*drawn.words("signer.team"), asker.get("requester.team", _NOWHERE[0]), asker.get("resource.owner", _NOWHERE[0])]
        words = sorted(self.closed.get("signer.roles", drawn.texts))
        held = [[factor.role], *([factor.role, word] for word in words), [factor.role, *words]]
        reads = factor.filter.uses
        kinds = product(
            [_STRANGER, *drawn.words("signer.key")] if "signer.key" in reads else [_STRANGER],
            teams if "signer.team" in reads else teams[:1],
            held if "signer.roles" in reads else held[:1],
        )
        named = set()
        for key, team, roles in kinds:
            if key in named or key == asker.get("requester.key"):
                continue
            if _true(factor.filter, {**asker, "signer.key": key, "signer.team": team, "signer.roles": roles}):
                if key == _STRANGER:
                    yield from _strangers(factor)
                    return
                named.add(key)
        yield from sorted(named)


class _Drawn:
    """The questions over what some conditions read: all of them, or so many drawn from them, the same each time."""

    def __init__(self, asked: Questions, conditions: Sequence[Condition]) -> None:
        self.closed = asked.closed
        teams = () if asked.people is None else sorted({person.team for person in asked.people})
        self.texts = tuple(dict.fromkeys([*_literals(conditions), *teams]))
        self.joined = any(_JOINING.search(item.text) for item in conditions)
        names = sorted({name for item in conditions for name in item.uses if not name.startswith("signer.")})
        self.lists = {name: self._values(name) for name in names}
        self.count = prod(len(values) for values in self.lists.values())

    def __iter__(self) -> Iterator[Question]:
        if self.count <= MOST_QUESTIONS:
            for combination in product(*self.lists.values()):
                yield dict(zip(self.lists, combination, strict=True))
            return
        chance = random.Random(0)  # noqa: S311 - the same questions each time; nothing secret
        for _ in range(MOST_QUESTIONS):
            yield {name: chance.choice(values) for name, values in self.lists.items()}

    def _values(self, name: str) -> list[Any]:
        kind = FILTER_VARIABLES[name]
        if kind == "bool":
            return [True, False]
        if kind == "string":
            return self.words(name)
        if kind == "list<string>":
            words = self.words(name)
            return [[], *([word] for word in words), words]
        return _moments(self.texts) if kind == "timestamp" else [{}]

    def words(self, name: str) -> list[str]:
        """Return what a variable of text can hold."""
        if name in self.closed:
            return sorted(self.closed[name])
        words = [*self.texts, *_NOWHERE]
        if self.joined and len(words) <= _MOST_JOINED:
            words += ["".join(pair) for pair in permutations(words, 2)]
            if len(self.texts) <= _MOST_JOINED_THRICE:
                words += ["".join(three) for three in permutations([*self.texts, _NOWHERE[0]], 3)]
        return list(dict.fromkeys(words))


_STRANGER = "\u2466\u2467"
_MOST_JOINED, _MOST_JOINED_THRICE = 12, 4
_JOINING = re.compile(r"\b(?:startsWith|endsWith|contains)\s*\(")


def _strangers(factor: Factor) -> Iterator[str]:
    return (f"{_STRANGER} {factor.factor} {number}" for number in range(factor.approve))


def _real_fillers(factor: Factor, asker: Question, people: Iterable[Person]) -> Iterator[str]:
    for person in people:
        if factor.role not in person.roles or person.key == asker.get("requester.key"):
            continue
        facts = {**asker, "signer.key": person.key, "signer.team": person.team, "signer.roles": sorted(person.roles)}
        # What these questions do not cover is left to the day of the request.
        if factor.filter is None or not _covered(factor.filter.text) or _true(factor.filter, facts):
            yield person.key


def _true(condition: Condition, question: Question) -> bool:
    return condition.evaluate(question).answer is Answer.TRUE


def _literals(conditions: Iterable[Condition]) -> Iterator[str]:
    for item in conditions:
        for double, single in _TEXT.findall(item.text):
            if (double or single).strip():
                yield double or single


def _covered(text: str) -> bool:
    """True where an expression compares its variables with texts and moments, and does nothing else with them."""
    if _UNREAD_TEXT.search(text):
        return False
    bare = _TEXT.sub('""', text)
    calls = set(_CALL.findall(bare))
    return calls <= _CALLS and not _UNCOVERED.search(_LATER.sub("true", bare))


def _moments(texts: Iterable[str]) -> list[datetime]:
    found = [datetime(2026, 1, 1, tzinfo=UTC)]
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        if moment.tzinfo is not None:
            try:
                found += [moment - _SECOND, moment, moment + _SECOND]
            except OverflowError:
                continue
    return found

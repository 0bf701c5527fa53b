"""Decide by an offline bundle while the gate is down, and never by one that is out of date.

    from pathlib import Path
    from compliance.client.offline import Bundle, parse_keys

    keys = parse_keys(["gate.example.org/ledger+1a2b3c4d+AZ…"])
    bundle = Bundle.open(Path("hr-prod.bundle"), system="hr-prod", keys=keys, state=Path("hr-prod.seen"))
    answer = bundle.check("hr-agent", fingerprint="sha256:…")
    if not answer:
        raise SystemExit(f"{answer.reason}: not today")

A bundle is used where all of this holds, and refused in every other case: one of the keys signed exactly these bytes; they are a
statement of this kind about this system; its checkpoint is signed by a key of the log; now is not before its making, save for a little,
and before its end, which is at most an hour later; nothing newer was seen before, of the bundle, the log and this machine's clock.

Whatever the bundle does not list is denied. Needs `cryptography`, and no network.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from compliance.client.answers import Answer, Named, Question, Reason, cannot_tell
from compliance.client.outcome import Refused
from compliance.client.seen import Older, Seen, remembering
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from compliance.ledger.offline import (
    LEEWAY_SECONDS,
    MAX_SECONDS,
    Line,
    Statement,
    StatementRefused,
    bundle_tag,
    open_statement,
    read_instant,
    read_statement,
)
from compliance.ledger.verifier import parse_keys
from evaluations.kernel.dsse import MAX_ENVELOPE_BYTES

__all__ = ["Bundle", "BundleRefused", "parse_keys"]

Prove = Callable[[Seen, CheckpointText], None]
"""Says whether a checkpoint continues the one that was seen."""
NO_GRANT = "not_in_bundle"
OUT_OF_DATE = "out_of_date"

_NUMBERED = re.compile(r"(.+)@([1-9][0-9]{0,8})\Z", re.ASCII)


class BundleRefused(Refused):
    """A bundle that nothing may be decided by; `code` is one of `not_a_bundle`, `wrong_system`, `out_of_date`, `older`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Bundle:
    """One verified bundle. Every question is held against the clock again."""

    def __init__(self, statement: Statement, tag: str, checkpoint: CheckpointText, clock: Callable[[], datetime]) -> None:
        self.statement = statement
        self.tag = tag
        """The entity tag of the bundle at the service."""
        self.checkpoint = checkpoint
        self._clock = clock
        self._by_key, self._by_name = defaultdict[str, list[Line]](list), defaultdict[str, list[Line]](list)
        for line in statement.lines:
            self._by_key[line.subject].append(line)
            for name in line.names:
                self._by_name[name].append(line)

    @classmethod
    def open(cls, path: Path, *, system: str, keys: Iterable[VerifierKey], state: Path) -> "Bundle":
        """Return the bundle in a file; what was seen is kept in `state`. Raises `BundleRefused`, `Refused`."""
        return cls.read(read_file(path), system=system, keys=keys, state=state)

    @classmethod
    def read(cls, data: bytes, *, system: str, keys: Iterable[VerifierKey], state: Path, prove: Prove | None = None) -> "Bundle":
        """Return the bundle that bytes are, as `open` does. `prove` is asked before anything is kept, and may raise `Refused`."""
        bundle = cls._opened(data, system, keys, None)
        with remembering(state, system) as memory:
            if bundle.is_past():
                memory.keep(memory.seen.ended(bundle.statement))
            bundle.check_time()
            after = bundle.seen_after(memory.seen)
            if prove is not None:
                prove(memory.seen, bundle.checkpoint)
            memory.keep(after)
        return bundle

    @classmethod
    def verified(
        cls, data: bytes, *, system: str, keys: Iterable[VerifierKey], clock: Callable[[], datetime] | None = None
    ) -> "Bundle":
        """Return the bundle that bytes are, without asking what was seen before. Raises `BundleRefused`."""
        bundle = cls._opened(data, system, keys, clock)
        bundle.check_time()
        return bundle

    @classmethod
    def _opened(cls, data: bytes, system: str, keys: Iterable[VerifierKey], clock: Callable[[], datetime] | None) -> "Bundle":
        """Return the bundle that bytes are, whether it counts now or not. Raises `BundleRefused`."""
        known = list(keys)
        try:
            envelope = open_statement(data, known)
            statement = read_statement(envelope.payload)
            checkpoint = _checkpoint(statement, known)
        except (StatementRefused, NoteRefused, SignatureRefused) as error:
            raise BundleRefused("not_a_bundle", f"it is no bundle that one of your keys signed: {error}") from None
        if statement.system != system:
            raise BundleRefused("wrong_system", f"it is the bundle of `{statement.system}`, not of `{system}`")
        if not timedelta(0) < statement.expires_at - statement.issued_at <= timedelta(seconds=MAX_SECONDS):
            raise BundleRefused("not_a_bundle", f"it counts for other than up to {MAX_SECONDS} seconds")
        return cls(statement, bundle_tag(sha256(envelope.payload).hexdigest(), envelope.key), checkpoint, clock or _clock())

    def check(
        self,
        subject: str,
        action: str = "write",
        fingerprint: str | None = None,
        *,
        type: str = "agent",  # noqa: A002 - the protocol's word
    ) -> Answer:
        """Return what the bundle answers to a question about its system. Never raises: what is odd denies."""
        question = Question(subject, self.statement.system, action, fingerprint, False, type)
        try:
            at = self._clock()
            self._check_time(at)
            found = [line for line in self._meant(question) if line.action == action]
        except BundleRefused as refused:
            return cannot_tell(question, refused.code, str(refused))
        except Exception as error:  # whatever breaks on this side is no permission
            return cannot_tell(question, "not_a_bundle", f"the bundle could not be read: {error.__class__.__name__}")
        if len(found) == 1:
            return self._answer(question, found[0], at)
        return _denied(question, NO_GRANT, f"the bundle does not list `{subject}` for {action} at `{self.statement.system}`")

    def _answer(self, question: Question, line: Line, at: datetime) -> Answer:
        named = Named(line.subject, line.version, line.fingerprint)
        if question.fingerprint is not None and question.fingerprint != line.fingerprint:
            text = f"`{line.subject}@{line.version}` is allowed, and another configuration is about to run"
            return replace(_denied(question, "unknown_fingerprint", text), subject=named)
        until = min(read_instant(line.valid_until), self.statement.expires_at)
        if at >= until:
            return replace(_denied(question, OUT_OF_DATE, f"it was allowed until {line.valid_until}"), subject=named)
        return Answer(question, allowed=True, certain=True, subject=named, valid_until=until)

    def _meant(self, question: Question) -> Sequence[Line]:
        """Return the lines of what a question names, as the gate reads names."""
        if question.type == "alias":
            return self._by_name.get(question.subject, ())
        numbered = _NUMBERED.match(question.subject)
        own = self._by_key.get(numbered[1] if numbered else question.subject, ())
        own = [line for line in own if question.type in (line.kind, "subject")]
        if numbered:
            return [line for line in own if line.version == int(numbered[2])]
        stated = [line for line in own if question.fingerprint == line.fingerprint]
        return stated or [line for line in own if line.runs]

    def is_past(self) -> bool:
        """True where this machine's clock is at the bundle's end, or behind it."""
        return self._clock() >= self.statement.expires_at

    def check_time(self) -> None:
        """Raise `BundleRefused` unless the bundle counts now."""
        self._check_time(self._clock())

    def _check_time(self, at: datetime) -> None:
        told = self.statement
        if at < told.issued_at - timedelta(seconds=LEEWAY_SECONDS):
            text = f"it was made at {told.issued_at:%Y-%m-%dT%H:%M:%SZ}, which is ahead on this machine's clock"
            raise BundleRefused(OUT_OF_DATE, text)
        if at >= told.expires_at:
            raise BundleRefused(OUT_OF_DATE, f"it counted until {told.expires_at:%Y-%m-%dT%H:%M:%SZ}: fetch a new one")

    def seen_after(self, seen: Seen) -> Seen:
        """Return what is to be remembered once this bundle was seen. Raises `BundleRefused`."""
        try:
            return seen.check(self.statement, self.tag.partition(".")[0], self.checkpoint, self._clock())
        except Older as older:
            raise BundleRefused("older", str(older)) from None


def read_file(path: Path) -> bytes:
    """Return a bundle's bytes. Raises `Refused`."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_ENVELOPE_BYTES + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_ENVELOPE_BYTES:
        raise Refused(f"{path} is longer than {MAX_ENVELOPE_BYTES} bytes")
    return data


def _checkpoint(statement: Statement, keys: Sequence[VerifierKey]) -> CheckpointText:
    note = parse_note(statement.checkpoint.encode())
    signed_by = verify_note(note, keys)
    checkpoint = parse_checkpoint(note.text)
    if checkpoint.origin not in {key.name for key in signed_by}:
        raise NoteRefused(f"the checkpoint is of `{checkpoint.origin}`, and its own key has not signed it")
    return checkpoint


def _clock() -> Callable[[], datetime]:
    """Return a clock that a machine's clock cannot set back while this process runs."""
    began, ticks = datetime.now(UTC), time.monotonic()
    return lambda: max(datetime.now(UTC), began + timedelta(seconds=time.monotonic() - ticks))


def _denied(question: Question, code: str, message: str) -> Answer:
    return Answer(question, certain=True, reasons=(Reason(code, message, {}),))

"""What a decision was read from and what it says, as plain values: the shapes that are stored, and their canonical bytes.

Facts hold text, whole numbers, true, false and null alone; instants are text in UTC with microseconds and `Z`, so that they compare
as text. The members:

- `question`: `subject_type subject fingerprint action resource_type system`, as asked
- `alias`: null, or the name through which the subject was found: `name now before` (as `key@number`, "" for nobody)
- `known_subject`: whether a subject has the key that was asked about, whatever became of its version
- `system`: null, or `key domain environment reversible open_incident owner`
- `policies`: the versions in force that name the action, each `policy version digest profile params_digest domain`;
  one whose text cannot be read has `refused`, the codes of its problems, in place of the last three
- `conformance`: only where the conformance profile answered: the registered properties of `subject` and of `resource`, each as JSON
  text; the question then has `claims`, what the caller says of `subject`, `action` and `resource`, as JSON text
- `subject`: null, or `key kind provider version digest closed changed_at urgent_at running running_since standings grants waivers
  reaches`; `reaches` holds, for a route without a grant of its own, its members in the same shape
"""

from typing import Any, NamedTuple

import orjson

FORMAT = "writegate-decision/1"
SEMANTICS = 1
"""Of `judge`: a change of meaning is a new number, and the old code stays for replays."""

Value = dict[str, Any]


class Question(NamedTuple):
    """One question, as asked. `fingerprint` is "" where none was given.

    `claims` is JSON text: the properties that the caller states of `subject`, `action` and `resource`. Nothing reads it but the
    conformance profile; elsewhere it is "".
    """

    subject_type: str
    subject: str
    action: str
    system: str
    resource_type: str = "system"
    fingerprint: str = ""
    claims: str = ""

    def as_value(self) -> Value:
        """Return it as facts hold it: without `claims` where there are none."""
        value = self._asdict()
        if not self.claims:
            del value["claims"]
        return value


def plain_bytes(value: Any) -> bytes:
    """Return the canonical bytes of a plain value, as `canonical_bytes` writes them, thirty times as fast.

    The keys are ASCII, so that their order is the same, and there are no numbers but whole ones. A test holds the bytes against each
    other.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)

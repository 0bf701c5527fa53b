"""A typed client for the gate: ask before you write, and do nothing unless the answer is true.

    from pathlib import Path
    from compliance.client.gate import Gate

    gate = Gate("https://gate.example.org", token=Path("/run/secrets/writegate").read_text().strip())
    answer = gate.check("hr-agent", "hr-prod", fingerprint="sha256:…")
    if not answer:
        raise SystemExit(f"{answer.reason}: not today")

What people can sign may be asked for, and once they have signed the gate is asked again:

    if answer.requestable_until is not None:
        task = gate.wait(gate.request(answer, justification="the nightly sync needs it"), seconds=3600)
        answer = gate.check("hr-agent", "hr-prod", approval=task.approval)

Nothing is kept between two questions: a grant that was stopped a second ago denies now. Standard library only.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from compliance.client.access_requests import RequestRefused, Task, denied_value, file_request, read_task, wait_for
from compliance.client.answers import REQUEST_ID, Answer, Doubtful, Question, cannot_tell, judge, read_body
from compliance.client.http import RETRIES, TIMEOUT_SECONDS, AddressRefused, NoAnswer, Server, check_address
from compliance.client.options import is_token

ONE_PATH = "/access/v1/evaluation"
MANY_PATH = "/access/v1/evaluations"

__all__ = ["AddressRefused", "Answer", "Gate", "NoAnswer", "Question", "RequestRefused", "Task"]


class Gate:
    """The gate of one service. `timeout` seconds are for one call with all of its retries."""

    def __init__(
        self,
        server: str,
        *,
        token: str,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        allow_http: bool = False,
    ) -> None:
        """Raises `AddressRefused` for an address that no token is sent to, `ValueError` for what is no token or no time limit."""
        if not is_token(token):
            raise ValueError("that is no token")
        if not timeout > 0 or retries < 0:
            raise ValueError("timeout is more than 0 seconds, and retries are 0 or more")
        self._server = Server(check_address(server, allow_http=allow_http), token)
        self._timeout = timeout
        self._retries = retries

    def check(
        self,
        subject: str,
        system: str,
        action: str = "write",
        fingerprint: str | None = None,
        *,
        observe: bool = False,
        type: str = "agent",  # noqa: A002 - the protocol's word
        approval: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the gate's answer to one question. Never raises: where there is no answer to rely on, it is a deny that says why."""
        question = Question(subject, system, action, fingerprint, observe, type, approval)
        request_id = uuid.uuid4().hex
        try:
            body = self._ask(ONE_PATH, question.as_value(), request_id)
            return judge(body, question, at=datetime.now(UTC), request_id=request_id)
        except Exception as error:  # whatever breaks on this side is no permission
            return _denied(question, error, request_id)

    def check_all(self, questions: Iterable[Question]) -> list[Answer]:
        """Return the answers to many questions, asked at once, in their order. Never raises, as `check`."""
        asked = list(questions)
        request_id = uuid.uuid4().hex
        try:
            if not asked:
                return []
            body = self._ask(MANY_PATH, {"evaluations": [question.as_value() for question in asked]}, request_id)
            decisions = body.get("evaluations")
            if not isinstance(decisions, list) or len(decisions) != len(asked):
                raise Doubtful("not_understood", f"the answer does not hold {len(asked)} decisions, one a question")
            at = datetime.now(UTC)
            return [judge(one, question, at=at, request_id=request_id) for one, question in zip(decisions, asked, strict=True)]
        except Exception as error:
            return [_denied(question, error, request_id) for question in asked]

    def request(self, answer: Answer, *, justification: str, until: datetime | None = None, emergency: bool = False) -> Task:
        """Ask people for what an answer denied, and return the task; where one is there already, that one.

        `until` is the end that is asked for, by default what is usual. Raises `ValueError` for an answer that no request would change,
        `RequestRefused`, `NoAnswer`.
        """
        value = denied_value(answer, justification=justification, until=until, emergency=emergency)
        return file_request(self._server, value, timeout=self._timeout, retries=self._retries)

    def task(self, uid: str) -> Task:
        """Return where a request stands. Raises `RequestRefused`, `NoAnswer`."""
        return read_task(self._server, uid, timeout=self._timeout, retries=self._retries)

    def wait(self, task: Task, *, seconds: float) -> Task:
        """Return a task once it has ended, or as it stands after so many seconds. Raises `RequestRefused`."""
        return wait_for(self._server, task, seconds=seconds, timeout=self._timeout, retries=self._retries)

    def _ask(self, path: str, value: Mapping[str, Any], request_id: str) -> Mapping[str, Any]:
        """Return the object that the gate answered. Raises `NoAnswer`, `Doubtful`."""
        reply = self._server.send(
            "POST",
            path,
            json.dumps(value, ensure_ascii=False).encode(),
            headers={REQUEST_ID: request_id},
            timeout=self._timeout,
            retries=self._retries,
        )
        return read_body(reply, request_id)


def _denied(question: Question, error: Exception, request_id: str) -> Answer:
    code = error.code if isinstance(error, Doubtful) else "no_answer"
    said = str(error) if isinstance(error, Doubtful | NoAnswer) else f"the question could not be put: {type(error).__name__}"
    return cannot_tell(question, code, said, request_id=request_id)

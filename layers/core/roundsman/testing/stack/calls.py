"""Every call that the functions make to AWS: noted, and made to fail where a test says so.

The faults strike on the wire of botocore, so its own reading of errors and its own retries run.
A refused try never reaches moto; an answer that is lost is lost after moto did what was asked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import BytesIO
from typing import TYPE_CHECKING

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError
from moto.core.models import botocore_stubber

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.awsrequest import AWSPreparedRequest


class AwsFault(StrEnum):
    """What happens to a call."""

    DIES_BEFORE = "the process dies just before the call"
    DIES_AFTER = "the process dies just after the call, before it sees the answer"
    THROTTLED = "AWS answers that there are too many calls, and does nothing"
    BROKEN = "AWS answers that something broke, and does nothing"
    ANSWER_LOST = "AWS does what is asked, and the connection ends without its answer"


DEATHS = (AwsFault.DIES_BEFORE, AwsFault.DIES_AFTER)

# What the services say themselves; each is an error that botocore's standard mode tries again.
ERRORS: Mapping[tuple[AwsFault, str], tuple[int, str]] = {
    (AwsFault.THROTTLED, "dynamodb"): (400, "ThrottlingException"),
    (AwsFault.THROTTLED, "sqs"): (400, "RequestThrottled"),
    (AwsFault.THROTTLED, "sns"): (400, "Throttling"),
    (AwsFault.BROKEN, "dynamodb"): (500, "InternalServerError"),
    (AwsFault.BROKEN, "sqs"): (500, "InternalFailure"),
    (AwsFault.BROKEN, "sns"): (500, "InternalError"),
}
ELSEWHERE = {
    AwsFault.THROTTLED: (400, "ThrottlingException"),
    AwsFault.BROKEN: (500, "InternalFailure"),
}

XML_ERROR = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{said}</Message></Error>"
    "<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>"
)


class Killed(BaseException):
    """The function's process is gone, as after SIGKILL: no `except Exception` sees it."""


@dataclass(frozen=True)
class Call:
    """One call to AWS: by which function, what, and with which parameters."""

    function: str
    service: str
    operation: str
    parameters: Mapping[str, object]


@dataclass
class Strike:
    """One fault that waits for its call, and is gone once it has met it.

    The call is the one after `after` others by that function (any, if None) of that operation
    (any, if None). `tries` is how many tries of it are struck; None: every one, so that it fails.
    """

    fault: AwsFault
    function: str | None = None
    operation: str | None = None
    after: int = 0
    tries: int | None = None

    def meets(self, call: Call) -> bool:
        """Whether this is its call."""
        if self.function not in (None, call.function):
            return False
        if self.operation not in (None, call.operation):
            return False
        self.after -= 1
        return self.after < 0


@dataclass
class AwsCalls:
    """What the functions ask of AWS. `running` is the function that is being called now."""

    calls: list[Call] = field(default_factory=list)
    strikes: list[Strike] = field(default_factory=list)
    running: str = ""
    struck: int = 0
    """How many calls have met a fault so far."""
    _striking: Strike | None = None

    def listen(self, session: "Session") -> None:
        """Hear of all calls by the clients that this session makes from now on."""
        events = session.events
        events.register_last("provide-client-params.*.*", self._begins)
        # Around moto's own handler, which answers between these two.
        events.register_first("before-send", self._sends)  # type: ignore[arg-type]  # it may answer
        events.register_last("before-send", self._answered)
        events.register_first("after-call.*.*", self._ends)

    def _begins(self, params: Mapping[str, object], event_name: str, **_rest: object) -> None:
        if not self.running:  # a call of the test itself
            return
        _, service, operation = event_name.split(".")
        call = Call(self.running, service, operation, dict(params))
        self.calls.append(call)
        self._striking = next((strike for strike in self.strikes if strike.meets(call)), None)
        if self._striking is not None:
            self.strikes.remove(self._striking)
            self.struck += 1
            if self._striking.fault is AwsFault.DIES_BEFORE:
                self._die()

    def _sends(
        self, request: "AWSPreparedRequest", event_name: str, **_rest: object
    ) -> AWSResponse | None:
        if self._strikes_now(AwsFault.THROTTLED, AwsFault.BROKEN) and self._striking is not None:
            botocore_stubber.enabled = False  # for this one try; see _answered
            return _refusal(self._striking.fault, event_name.split(".")[1], request)
        return None

    def _answered(self, request: "AWSPreparedRequest", **_rest: object) -> None:
        if self._strikes_now(AwsFault.THROTTLED, AwsFault.BROKEN):
            botocore_stubber.enabled = True
            self._one_try_less()
        elif self._strikes_now(AwsFault.ANSWER_LOST):
            self._one_try_less()
            raise ConnectionClosedError(endpoint_url=str(request.url))

    def _ends(self, **_rest: object) -> None:
        if self.running and self._striking and self._striking.fault is AwsFault.DIES_AFTER:
            self._die()

    def _strikes_now(self, *faults: AwsFault) -> bool:
        return bool(self.running) and self._striking is not None and self._striking.fault in faults

    def _one_try_less(self) -> None:
        if self._striking is not None and self._striking.tries is not None:
            self._striking.tries -= 1
            if self._striking.tries <= 0:
                self._striking = None

    def _die(self) -> None:
        self._striking = None
        raise Killed(self.running)


def _refusal(fault: AwsFault, service: str, request: "AWSPreparedRequest") -> AWSResponse:
    """An error as that service words it, in the protocol of the request."""
    status, code = ERRORS.get((fault, service), ELSEWHERE[fault])
    said = "made to fail by a test"
    if b"json" in str(request.headers.get("Content-Type", "")).encode():
        kind = "application/x-amz-json-1.0"
        body = json.dumps({"__type": f"com.amazonaws.{service}#{code}", "message": said})
    else:
        kind, body = "text/xml", XML_ERROR.format(code=code, said=said)
    headers = {"content-type": kind, "x-amzn-requestid": "0"}
    raw = _Raw(body.encode())
    return AWSResponse(str(request.url), status, headers, raw)  # type: ignore[arg-type]  # as moto


class _Raw(BytesIO):
    """A body as botocore reads it off a connection."""

    def stream(self, **_rest: object) -> "list[bytes]":
        """All of it at once."""
        return [self.read()]

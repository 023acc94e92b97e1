"""Records the calls of the functions to AWS and makes the chosen ones fail.

Faults are injected below botocore's error handling and retries, so both really run. A request that
is answered with an error never reaches moto; a lost answer is lost after moto has done the work.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import BytesIO
from typing import TYPE_CHECKING, cast

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError
from moto.core.models import botocore_stubber

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.awsrequest import AWSPreparedRequest


class AwsFault(StrEnum):
    """A way in which a call to AWS can fail. Each value is a sentence that describes it."""

    DIES_BEFORE = "the process dies just before the call"
    DIES_AFTER = "the process dies just after the call, before it sees the answer"
    THROTTLED = "AWS answers that there are too many calls, and does nothing"
    BROKEN = "AWS answers that something broke, and does nothing"
    IN_CONFLICT = (
        "DynamoDB answers that a transaction of another caller is under way, and does nothing"
    )
    ANSWER_LOST = "AWS carries out the call, and the connection ends without its answer"


REFUSALS = (AwsFault.THROTTLED, AwsFault.BROKEN, AwsFault.IN_CONFLICT)
DEATHS = (AwsFault.DIES_BEFORE, AwsFault.DIES_AFTER)

# The services' own status and error codes. botocore's standard mode retries all but a conflict.
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
    AwsFault.IN_CONFLICT: (400, "TransactionConflictException"),
}

XML_ERROR = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    "<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>"
)


class Killed(BaseException):
    """The function's process has died, as after SIGKILL. No `except Exception` catches it."""


@dataclass(frozen=True)
class AwsCall:
    """One call to AWS."""

    function: str
    """The logical id of the function that made it."""
    service: str
    """As botocore names it (`dynamodb`)."""
    operation: str
    """As the API names it (`UpdateItem`)."""
    parameters: Mapping[str, object]


@dataclass
class InjectedFault:
    """One fault that waits for its call. It hits a single call and is then removed."""

    fault: AwsFault
    function: str | None = None
    """The function whose calls match; None means any."""
    operation: str | None = None
    """The operation whose calls match; None means any."""
    after: int = 0
    """How many matching calls pass before the one that is hit. `meets` counts it down."""
    tries: int | None = None
    """How many of botocore's tries of the call fail; None means all, so that the call fails."""

    def meets(self, call: AwsCall) -> bool:
        """Whether this call is the one to hit. Counts the call if it matches."""
        if self.function not in (None, call.function):
            return False
        if self.operation not in (None, call.operation):
            return False
        self.after -= 1
        return self.after < 0


@dataclass
class AwsCalls:
    """Records the calls of the functions to AWS and injects the waiting faults."""

    calls: list[AwsCall] = field(default_factory=list)
    """The calls so far, in order."""
    strikes: list[InjectedFault] = field(default_factory=list)
    """The faults that have not hit a call yet."""
    running: str = ""
    """The function that is being called now; empty while the test itself acts."""
    struck: int = 0
    """The number of calls that a fault has hit so far."""
    _striking: InjectedFault | None = None

    def listen(self, session: "Session") -> None:
        """Register for the calls of all clients that this session creates from now on."""
        events = session.events
        events.register_last("provide-client-params.*.*", self._begins)
        # moto's own handler runs between these two and answers the request.
        events.register_first("before-send", self._sends)  # type: ignore[arg-type]  # it may answer
        events.register_last("before-send", self._answered)
        events.register_first("after-call.*.*", self._ends)

    def _begins(self, params: Mapping[str, object], event_name: str, **_rest: object) -> None:
        if not self.running:  # a call of the test itself
            return
        _, service, operation = event_name.split(".")
        call = AwsCall(self.running, service, operation, dict(params))
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
        if self._strikes_now(*REFUSALS) and self._striking is not None:
            botocore_stubber.enabled = False  # for this try only; _answered enables it again
            return _refusal(self._striking.fault, event_name.split(".")[1], request)
        return None

    def _answered(self, request: "AWSPreparedRequest", **_rest: object) -> None:
        if self._strikes_now(*REFUSALS):
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
    """The error response of that service, in the protocol of the request."""
    status, code = ERRORS.get((fault, service), ELSEWHERE[fault])
    message = "made to fail by a test"
    if b"json" in str(request.headers.get("Content-Type", "")).encode():
        kind = "application/x-amz-json-1.0"
        shown: dict[str, object] = {"message": message}
        if fault is AwsFault.IN_CONFLICT and (writes := _writes(request)):
            code, reasons = "TransactionCanceledException", [{"Code": "TransactionConflict"}]
            shown["CancellationReasons"] = [*reasons, *((writes - 1) * [{"Code": "None"}])]
        body = json.dumps({"__type": f"com.amazonaws.{service}#{code}", **shown})
    else:
        kind, body = "text/xml", XML_ERROR.format(code=code, message=message)
    headers = {"content-type": kind, "x-amzn-requestid": "0"}
    raw = _Raw(body.encode())
    return AWSResponse(str(request.url), status, headers, raw)  # type: ignore[arg-type]  # as moto


def _writes(request: "AWSPreparedRequest") -> int:
    """How many writes the transaction has that is asked for; 0 if none is asked for."""
    if "TransactWriteItems" not in str(request.headers.get("X-Amz-Target", "")):
        return 0
    return len(json.loads(cast("bytes", request.body))["TransactItems"])


class _Raw(BytesIO):
    """A response body with the interface that botocore reads from a connection."""

    def stream(self, **_rest: object) -> "list[bytes]":
        """The whole body as one chunk."""
        return [self.read()]

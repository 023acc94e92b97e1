"""Handles one request: validates it, applies faults, performs the effect and returns the reply.

This module does not use sockets. A call is handled in this order: validate it, count it, hang,
reject it by a fault, look it up in the ledger, wait for the latency, perform the effect, spoil or
lose the answer. A hang delays the request before it reaches the service, as a network does, so
another call with the same key is handled meanwhile. A latency is time that the service needs, so
another call with the same key gets 409 InProgress meanwhile.
"""

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from roundsman_testing.remote_services.contract import (
    Route,
    ServiceOperation,
    route,
    with_stand_ins,
)
from roundsman_testing.remote_services.fault_rules import read_rules
from roundsman_testing.remote_services.faults import (
    ActiveFaults,
    ForgetKey,
    Hang,
    LoseAnswer,
    Refuse,
    ServiceFault,
    Spoil,
    Target,
)
from roundsman_testing.remote_services.hold import TooManyHanging, WaitingRoom
from roundsman_testing.remote_services.ledger import ServiceCall, ServiceLedger
from roundsman_testing.remote_services.values import Answer, Body, Json, refused

MAX_KEY = 512  # twice the longest key: an order id of 128, a step name and an agent's name
CALL_LOG_LENGTH = 10_000
CALLBACK_FIELD = "callbackToken"
"""The field of a body with the token that an answer to a waiting step must name."""


@dataclass(frozen=True)
class ServiceRequest:
    """A request that was read completely. `path` has no query."""

    method: str
    path: str
    key: str | None
    body: bytes


@dataclass(frozen=True)
class Silence:
    """A reply: close the connection without an answer."""


@dataclass(frozen=True)
class Spoiled:
    """A reply: send this answer in a form that the client cannot read."""

    answer: Answer
    spoil: Spoil


Reply: TypeAlias = Answer | Silence | Spoiled


class ExampleServices:
    """The example's services and stand-ins, with one ledger, one set of fault rules and one log."""

    def __init__(
        self,
        clock: Callable[[], int],
        stand_ins: Iterable[str] = (),
        find_stand_ins: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """`clock` returns epoch milliseconds. Raises ValueError for an invalid name in `stand_ins`.

        `stand_ins` are the names of more services; see `contract.with_stand_ins`.
        `find_stand_ins` returns them anew; it is called for a service that is not known yet.
        """
        self._clock = clock
        self.operations = with_stand_ins(stand_ins)
        self._find_stand_ins = find_stand_ins
        self.ledger = ServiceLedger()
        self._faults = ActiveFaults()
        self._calls: deque[Body] = deque(maxlen=CALL_LOG_LENGTH)
        self._callbacks: deque[Body] = deque(maxlen=CALL_LOG_LENGTH)
        self._calls_lock = threading.Lock()
        self.hold = WaitingRoom()

    def handle(self, request: ServiceRequest) -> Reply:
        """Handle one request to a service, with its effect and its faults. Returns the reply."""
        ticket, ledger, faults = self.hold.ticket(), self.ledger, self._faults
        if self._find_stand_ins is not None and not self._is_known(request.path):
            self.operations = with_stand_ins(self._find_stand_ins())
        read = _read(request, ledger, self.operations)
        if isinstance(read, Answer):
            return self._logged(request, "", read)
        call, refusal = read
        ledger.received(call)
        fault = faults.meet(Target(call.operation, call.order_id, call.key))
        try:
            reply = self._with_fault(call, refusal, fault, ledger, ticket)
        except TooManyHanging:
            reply = refused(503, "TooManyHanging", "too many requests hang already; release them")
        return self._logged(request, call.order_id, reply)

    def _is_known(self, path: str) -> bool:
        return path.split("/")[1] in {operation.resource for operation in self.operations}

    def effects(self, order_id: str | None = None) -> list[Json]:
        """List the ledger's entries since its last reset: of one order, or of all if None."""
        return self.ledger.effects(order_id)

    def calls(self, order_id: str | None = None) -> list[Json]:
        """List the last CALL_LOG_LENGTH calls, oldest first: of one order, or of all if None.

        Bodies are not kept.
        """
        with self._calls_lock:
            calls = list(self._calls)
        return [call for call in calls if order_id is None or call["orderId"] == order_id]

    def callbacks(self, order_id: str | None = None) -> list[Json]:
        """List the callback tokens of accepted calls, oldest first: of one order, or of all."""
        with self._calls_lock:
            callbacks = list(self._callbacks)
        return [each for each in callbacks if order_id is None or each["orderId"] == order_id]

    def reset(self) -> None:
        """Remove all effects, keys, calls and tokens. Requests under way end in the old ledger."""
        self.ledger = ServiceLedger()
        with self._calls_lock:
            self._calls.clear()
            self._callbacks.clear()
        self.hold.release()

    def set_faults(self, document: Json) -> None:
        """Replace all fault rules and release the waiting requests. Raises FaultsInvalid."""
        self._faults = ActiveFaults(read_rules(document, self.operations))
        self.hold.release()

    def faults(self) -> Body:
        """Return the rules, how many calls each has hit, and how many requests wait now."""
        waiting: Body = {"hanging": self.hold.hanging, "slow": self.hold.slow}
        return {**self._faults.described(), **waiting}

    def _with_fault(
        self,
        call: ServiceCall,
        refusal: Answer | None,
        fault: ServiceFault,
        ledger: ServiceLedger,
        ticket: int,
    ) -> Reply:
        match fault.failure:
            case Hang(seconds=seconds):
                if not self.hold.hang(ticket, seconds):
                    return Silence()
            case Refuse(answer=answer):
                return answer if self._delayed(fault, ticket) else Silence()
            case ForgetKey():
                ledger.forget(call)
            case LoseAnswer() | Spoil() | None:
                pass
        settled = self._effect(call, refusal, fault, ledger, ticket)
        if settled is None:
            return Silence()
        match fault.failure:
            case LoseAnswer(silence=silence):
                if silence is not None:
                    # If too many requests hang, the silence ends early; the answer is still lost.
                    with suppress(TooManyHanging):
                        self.hold.hang(ticket, silence.seconds)
                return Silence()
            case Spoil() as spoil:
                return Spoiled(settled, spoil)
            case _:
                return settled

    def _effect(
        self,
        call: ServiceCall,
        refusal: Answer | None,
        fault: ServiceFault,
        ledger: ServiceLedger,
        ticket: int,
    ) -> Answer | None:
        """Wait for the latency of the call, then settle it. None means that the server stops."""
        known = ledger.begin(call)
        if not self._delayed(fault, ticket):
            if known is None:
                ledger.abandon(call)
            return None
        answer = known if known is not None else ledger.settle(call, refusal, self._clock())
        if call.callback_token and answer.status < 300:
            self._keep_token(call)
        return answer

    def _keep_token(self, call: ServiceCall) -> None:
        kept: Body = {
            "at": self._clock(),
            "service": call.operation.service,
            "orderId": call.order_id,
            "key": call.key,
            "token": call.callback_token,
        }
        with self._calls_lock:
            self._callbacks.append(kept)

    def _delayed(self, fault: ServiceFault, ticket: int) -> bool:
        seconds = fault.latency_seconds
        return self.hold.delay(ticket, seconds) if seconds else True

    def _logged(self, request: ServiceRequest, order_id: str, reply: Reply) -> Reply:
        answer = reply.answer if isinstance(reply, Spoiled) else reply
        logged: Body = {
            "at": self._clock(),
            "method": request.method,
            "path": request.path,
            "key": request.key,
            "orderId": order_id,
            "status": answer.status if isinstance(answer, Answer) else None,
            "spoiled": isinstance(reply, Spoiled),
        }
        with self._calls_lock:
            self._calls.append(logged)
        return reply


def _read(
    request: ServiceRequest, ledger: ServiceLedger, operations: Sequence[ServiceOperation]
) -> tuple[ServiceCall, Answer | None] | Answer:
    """Read a request as a call.

    Returns the call, with the refusal that the contents of its order lead to (None if they do not),
    or an error answer if the request is invalid.
    """
    found = route(request.method, request.path, operations)
    if isinstance(found, Answer):
        return found
    # A probe has no effect, so it needs no key of its own.
    key = found.perform_key if found.operation.kind == "probe" else request.key
    if key is None or not key:
        return refused(400, "IdempotencyKeyMissing", "every call needs an Idempotency-Key header")
    if not _is_key(key) or not _is_key(found.perform_key or key):
        sentence = f"a key must be 1 to {MAX_KEY} printable ASCII characters"
        return refused(400, "IdempotencyKeyInvalid", sentence)
    body = _body(found.operation, request.body)
    if isinstance(body, Answer):
        return body
    if problems := found.operation.problems(body):
        return refused(400, "BodyInvalid", "; ".join(problems), problems=[*problems])
    return _call(found, key, body, ledger), found.operation.refusal(body)


def _call(found: Route, key: str, body: Body, ledger: ServiceLedger) -> ServiceCall:
    operation = found.operation
    perform_key = found.perform_key or str(body.get("chargeKey") or key)
    if operation.kind == "perform":
        perform_key, order_id = key, str(body["orderId"])
    else:
        order_id = ledger.order_of(operation.service, perform_key)
    # Each attempt has a callback token of its own, so it is no part of what the key is bound to.
    token = body.get(CALLBACK_FIELD)
    bound = [perform_key, {name: body[name] for name in body if name != CALLBACK_FIELD}]
    text = json.dumps(bound, sort_keys=True)
    return ServiceCall(
        operation,
        key,
        perform_key,
        order_id,
        hashlib.sha256(text.encode()).hexdigest(),
        token if isinstance(token, str) else "",
    )


def _body(operation: ServiceOperation, raw: bytes) -> Body | Answer:
    if operation.is_addressed:
        return {}  # a DELETE or GET has all its data in the path
    try:
        body = parse_json(raw)
    except NotJson as problem:
        return refused(400, "BodyNotJson", str(problem))
    if not isinstance(body, dict):
        return refused(400, "BodyInvalid", "the body must be a JSON object")
    return body


class NotJson(ValueError):
    """Raised if a body is not JSON."""


def parse_json(raw: bytes) -> Json:
    """Parse a body as strict JSON, without NaN and Infinity. Raises NotJson."""
    try:
        parsed: Json = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson("the body must be JSON") from error
    return parsed


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _is_key(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()

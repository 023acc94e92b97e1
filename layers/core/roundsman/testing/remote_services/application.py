"""One request in, what to send out: the calls of the contract, with their faults and effects.

Knows nothing of sockets. The order for a call is: validate, count it, hang, refuse by fault, ask
the ledger, be slow, let the effect happen, spoil or lose the answer. A hang keeps the request in
front of the service, as a network does: another call with the key is handled meanwhile. A latency
is the service's own slowness: another call with the key then meets 409 InProgress.
"""

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from roundsman.testing.remote_services.contract import Operation, Route, route
from roundsman.testing.remote_services.fault_rules import read_rules
from roundsman.testing.remote_services.faults import (
    Fault,
    Faults,
    ForgetKey,
    Hang,
    LoseAnswer,
    Refuse,
    Spoil,
    Target,
)
from roundsman.testing.remote_services.hold import Hold, TooManyHanging
from roundsman.testing.remote_services.ledger import Call, Ledger
from roundsman.testing.remote_services.values import Answer, Body, Json, refused

MAX_KEY = 512  # twice what an order id of 128, a step name and an agent's name can come to
CALL_LOG_LENGTH = 10_000


@dataclass(frozen=True)
class Request:
    """A request that was read to its end; `path` has no query."""

    method: str
    path: str
    key: str | None
    body: bytes


@dataclass(frozen=True)
class Silence:
    """Close the connection without an answer."""


@dataclass(frozen=True)
class Spoiled:
    """Send this answer spoiled in this way."""

    answer: Answer
    spoil: Spoil


Reply: TypeAlias = Answer | Silence | Spoiled


class Application:
    """The four services over one ledger, one set of faults and one log of calls."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` returns epoch milliseconds."""
        self._clock = clock
        self._ledger = Ledger()
        self._faults = Faults()
        self._calls: deque[Body] = deque(maxlen=CALL_LOG_LENGTH)
        self._calls_lock = threading.Lock()
        self.hold = Hold()

    def handle(self, request: Request) -> Reply:
        """Answer one request of a service, with whatever effect and fault it meets."""
        ticket, ledger, faults = self.hold.ticket(), self._ledger, self._faults
        read = _read(request, ledger)
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

    def effects(self, order_id: str | None = None) -> list[Json]:
        """List every effect since the ledger was reset, for one order if asked."""
        return self._ledger.effects(order_id)

    def calls(self, order_id: str | None = None) -> list[Json]:
        """List the last calls as they came in, for one order if asked. Bodies are not kept."""
        with self._calls_lock:
            calls = list(self._calls)
        return [call for call in calls if order_id is None or call["orderId"] == order_id]

    def reset(self) -> None:
        """Forget all effects, keys and calls. What is still under way ends in the old ledger."""
        self._ledger = Ledger()
        with self._calls_lock:
            self._calls.clear()
        self.hold.release()

    def set_faults(self, document: Json) -> None:
        """Replace all fault rules and let go what they held. Raises FaultsInvalid."""
        self._faults = Faults(read_rules(document))
        self.hold.release()

    def faults(self) -> Body:
        """Return the rules, how many calls each has met, and how many requests wait now."""
        waiting: Body = {"hanging": self.hold.hanging, "slow": self.hold.slow}
        return {**self._faults.described(), **waiting}

    def _with_fault(
        self, call: Call, refusal: Answer | None, fault: Fault, ledger: Ledger, ticket: int
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
                    # One hang too many ends the silence early; the answer is lost all the same.
                    with suppress(TooManyHanging):
                        self.hold.hang(ticket, silence.seconds)
                return Silence()
            case Spoil() as spoil:
                return Spoiled(settled, spoil)
            case _:
                return settled

    def _effect(
        self, call: Call, refusal: Answer | None, fault: Fault, ledger: Ledger, ticket: int
    ) -> Answer | None:
        """Work on the call for its latency, and settle it; None: the server stops first."""
        known = ledger.begin(call)
        if not self._delayed(fault, ticket):
            if known is None:
                ledger.abandon(call)
            return None
        return known if known is not None else ledger.settle(call, refusal, self._clock())

    def _delayed(self, fault: Fault, ticket: int) -> bool:
        seconds = fault.latency_seconds
        return self.hold.delay(ticket, seconds) if seconds else True

    def _logged(self, request: Request, order_id: str, reply: Reply) -> Reply:
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


def _read(request: Request, ledger: Ledger) -> tuple[Call, Answer | None] | Answer:
    """Read a request as a call and what the order's contents make of it, or say what is wrong."""
    found = route(request.method, request.path)
    if isinstance(found, Answer):
        return found
    # A question has no effect, so it needs no key of its own.
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


def _call(found: Route, key: str, body: Body, ledger: Ledger) -> Call:
    operation = found.operation
    perform_key = found.perform_key or str(body.get("chargeKey") or key)
    if operation.kind == "perform":
        perform_key, order_id = key, str(body["orderId"])
    else:
        order_id = ledger.order_of(operation.service, perform_key)
    bound = json.dumps([perform_key, body], sort_keys=True)
    return Call(operation, key, perform_key, order_id, hashlib.sha256(bound.encode()).hexdigest())


def _body(operation: Operation, raw: bytes) -> Body | Answer:
    if operation.is_addressed:
        return {}  # a DELETE or GET says all in its path
    try:
        body = parse_json(raw)
    except NotJson as problem:
        return refused(400, "BodyNotJson", str(problem))
    if not isinstance(body, dict):
        return refused(400, "BodyInvalid", "the body must be a JSON object")
    return body


class NotJson(ValueError):
    """A body is not JSON."""


def parse_json(raw: bytes) -> Json:
    """Parse a body strictly: neither NaN nor Infinity. Raises NotJson."""
    try:
        parsed: Json = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson("the body must be JSON") from error
    return parsed


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _is_key(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()

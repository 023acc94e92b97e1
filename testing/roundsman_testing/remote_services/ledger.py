"""The ledger of the remote services: every effect, counted by its idempotency key.

    call -> received -> begin --------------------> settle -> answer
                          |  an answer is stored      |  refused: nothing is stored
                          |  key spent: KeyUndone     |  key spent meanwhile: KeyUndone
                          |  other body: KeyReused    |  else the effect, and its answer is stored
                          |  begun: InProgress        |

An undo spends the perform's key permanently, even if the perform never arrived, so no perform has
its effect after its undo. Effects are counted when they happen, not derived from the stored keys,
so a second effect of one key would be visible. A probe is read-only and is not recorded. Bodies are
stored as hashes only. This module uses neither HTTP nor a clock, and is thread-safe.
"""

import threading
from dataclasses import dataclass, field, replace

from roundsman_testing.remote_services.contract import ServiceOperation
from roundsman_testing.remote_services.values import Answer, Body, Json, Kind, refused


@dataclass(frozen=True)
class ServiceCall:
    """One valid request to a service."""

    operation: ServiceOperation
    key: str
    perform_key: str
    """The key of the perform that this call is, undoes or looks up."""
    order_id: str
    body_hash: str
    callback_token: str = ""
    """What an answer to the waiting step must name; empty if the body has none."""


@dataclass
class _Entry:
    call: ServiceCall
    calls: int = 0
    effects: int = 0
    at: list[int] = field(default_factory=list)
    result: Body = field(default_factory=dict)
    answer: Answer | None = None
    # The hash of the body whose answer is stored. A refused call does not bind its body to the key,
    # so a corrected order may use the key again.
    body_hash: str = ""
    in_progress: bool = False


class ServiceLedger:
    """The effects of all services since the ledger was created. Each service has its own keys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, Kind, str], _Entry] = {}
        self._spent: set[tuple[str, str]] = set()
        self._issued = 0

    def copy(self) -> "ServiceLedger":
        """Return a ledger with the same effects and keys, which changes apart from this one."""
        copied = ServiceLedger()
        with self._lock:
            copied._entries = {
                place: replace(entry, at=[*entry.at], result={**entry.result})
                for place, entry in self._entries.items()
            }
            copied._spent, copied._issued = set(self._spent), self._issued
        return copied

    def order_of(self, service: str, perform_key: str) -> str:
        """Return the order of a perform's key, because an undo names only the key.

        An unknown key is assumed to begin with the order's id, as Roundsman's keys do.
        """
        with self._lock:
            entry = self._entries.get((service, "perform", perform_key))
        return entry.call.order_id if entry else perform_key.split("/", 1)[0]

    def received(self, call: ServiceCall) -> None:
        """Count a request, independently of its result."""
        if call.operation.kind == "probe":
            return
        with self._lock:
            self._entry(call).calls += 1

    def begin(self, call: ServiceCall) -> Answer | None:
        """Begin a call. Returns its answer if there is one already, else None.

        After None the caller must call `settle` or `abandon`.
        """
        with self._lock:
            if call.operation.kind == "probe":
                return self._found(call)
            entry = self._entry(call)
            if self._is_spent(call):
                return _KEY_UNDONE
            if entry.in_progress:
                return _IN_PROGRESS
            if entry.answer is not None:
                return entry.answer if entry.body_hash == call.body_hash else _KEY_REUSED
            entry.in_progress = True
            return None

    def settle(self, call: ServiceCall, refusal: Answer | None, now: int) -> Answer:
        """Perform the effect of the call once, at `now` (epoch ms), unless it is refused.

        Returns the answer.
        """
        with self._lock:
            entry = self._entry(call)
            entry.in_progress = False
            if self._is_spent(call):
                return _KEY_UNDONE
            if refusal is not None:
                return refusal
            if self._takes_effect(call):
                entry.effects += 1
                entry.at.append(now)
            entry.result = self._result(call.operation)
            entry.answer = Answer(call.operation.ok_status, entry.result or None)
            entry.body_hash = call.body_hash
            return entry.answer

    def abandon(self, call: ServiceCall) -> None:
        """End, without an effect, a call that was begun and will not be settled."""
        with self._lock:
            self._entry(call).in_progress = False

    def forget(self, call: ServiceCall) -> None:
        """Forget the key of the call, as a service does when the lifetime of a key ends."""
        with self._lock:
            if call.operation.kind != "probe":
                self._entry(call).answer = None
            elif performed := self._performed(call):
                performed.answer = None
            self._spent.discard((call.operation.service, call.key))

    def effects(self, order_id: str | None = None) -> list[Json]:
        """List the entry of each key, in the order in which the keys first arrived."""
        with self._lock:
            entries = list(self._entries.values())
            return [
                self._described(entry)
                for entry in entries
                if order_id is None or entry.call.order_id == order_id
            ]

    def _found(self, call: ServiceCall) -> Answer:
        """The answer to a probe: whether the effect of the perform's key stands.

        While the perform is in progress, the answer is InProgress.
        """
        performed = self._performed(call)
        if performed is not None and performed.in_progress:
            return _IN_PROGRESS
        is_spent = (call.operation.service, call.perform_key) in self._spent
        if performed is None or performed.answer is None or is_spent:
            return refused(404, call.operation.absent, "nothing stands under this key")
        return Answer(call.operation.ok_status, performed.result)

    def _performed(self, call: ServiceCall) -> _Entry | None:
        return self._entries.get((call.operation.service, "perform", call.perform_key))

    def _entry(self, call: ServiceCall) -> _Entry:
        place = (call.operation.service, call.operation.kind, call.key)
        return self._entries.setdefault(place, _Entry(call))

    def _is_spent(self, call: ServiceCall) -> bool:
        is_perform = call.operation.kind == "perform"
        return is_perform and (call.operation.service, call.key) in self._spent

    def _takes_effect(self, call: ServiceCall) -> bool:
        if call.operation.kind == "perform":
            return True
        place = (call.operation.service, call.perform_key)
        performed = self._performed(call)
        undoes = performed is not None and performed.effects > 0 and place not in self._spent
        self._spent.add(place)
        return undoes

    def _result(self, operation: ServiceOperation) -> Body:
        if not operation.id_prefix:
            return {}
        self._issued += 1
        return {operation.id_field: f"{operation.id_prefix}-{self._issued:06d}"}

    def _described(self, entry: _Entry) -> Body:
        call = entry.call
        described: Body = {
            "service": call.operation.service,
            "resource": call.operation.resource,
            "operation": call.operation.kind,
            "key": call.key,
            "orderId": call.order_id,
            "effects": entry.effects,
            "calls": entry.calls,
            "undone": self._is_spent(call),
            "at": [*entry.at],
            "result": {**entry.result},
        }
        if call.operation.kind == "undo":
            described["performKey"] = call.perform_key
        return described


_KEY_UNDONE = refused(409, "KeyUndone", "this key was undone: nothing was done")
_KEY_REUSED = refused(422, "KeyReused", "this key was used with another body: nothing was done")
_IN_PROGRESS = refused(409, "InProgress", "a call with this key is still being worked on")

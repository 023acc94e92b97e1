"""What really happened: every effect, counted by its idempotency key.

    call -> received -> begin --------------------> settle -> answer
                          |  an answer is known       |  refused: nothing is remembered
                          |  key spent: KeyUndone     |  key spent meanwhile: KeyUndone
                          |  other body: KeyReused    |  else the effect, and its answer is kept
                          |  begun: InProgress        |

An undo spends the perform's key for ever, whether or not the perform ever arrived, so no perform
lands after its undo. Effects are counted where they happen and not by the keys that are known, so
that a second effect of one key would be seen. A probe only asks, and leaves no trace here. Bodies
are kept as hashes only. No HTTP and no clock in here; safe to call from many threads.
"""

import threading
from dataclasses import dataclass, field

from roundsman.testing.remote_services.contract import Operation
from roundsman.testing.remote_services.values import Answer, Body, Json, Kind, refused


@dataclass(frozen=True)
class Call:
    """One request as the ledger sees it; `perform_key` is `key` itself unless this is an undo."""

    operation: Operation
    key: str
    perform_key: str
    order_id: str
    body_hash: str


@dataclass
class _Entry:
    call: Call
    calls: int = 0
    effects: int = 0
    at: list[int] = field(default_factory=list)
    result: Body = field(default_factory=dict)
    answer: Answer | None = None
    # The body is bound to the key by the answer that is kept, not by a call that was refused: a
    # corrected order may use its key again.
    body_hash: str = ""
    in_progress: bool = False


class Ledger:
    """The effects of all services since the ledger was made. Keys are separate per service."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, Kind, str], _Entry] = {}
        self._spent: set[tuple[str, str]] = set()
        self._issued = 0

    def order_of(self, service: str, perform_key: str) -> str:
        """Return the order behind a perform's key: an undo names only the key.

        A key that this service never saw is taken to open with the order's id, as all of ours do.
        """
        with self._lock:
            entry = self._entries.get((service, "perform", perform_key))
        return entry.call.order_id if entry else perform_key.split("/", 1)[0]

    def received(self, call: Call) -> None:
        """Count a request, whatever becomes of it."""
        if call.operation.kind == "probe":
            return
        with self._lock:
            self._entry(call).calls += 1

    def begin(self, call: Call) -> Answer | None:
        """Return the answer that is already known, or None: then settle or abandon must follow."""
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

    def settle(self, call: Call, refusal: Answer | None, now: int) -> Answer:
        """Let the effect happen, once, at `now` (epoch milliseconds), unless it is refused."""
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

    def abandon(self, call: Call) -> None:
        """End a call that was begun and will not be settled: it had no effect."""
        with self._lock:
            self._entry(call).in_progress = False

    def forget(self, call: Call) -> None:
        """Forget what is known of the call's key, as a service past its key lifetime would."""
        with self._lock:
            if call.operation.kind != "probe":
                self._entry(call).answer = None
            elif performed := self._performed(call):
                performed.answer = None
            self._spent.discard((call.operation.service, call.key))

    def effects(self, order_id: str | None = None) -> list[Json]:
        """List what happened under each key, in the order in which the keys were first seen."""
        with self._lock:
            entries = list(self._entries.values())
            return [
                self._described(entry)
                for entry in entries
                if order_id is None or entry.call.order_id == order_id
            ]

    def _found(self, call: Call) -> Answer:
        """Whether the perform of that key stands: while it is worked on, nobody can tell."""
        performed = self._performed(call)
        if performed is not None and performed.in_progress:
            return _IN_PROGRESS
        is_spent = (call.operation.service, call.perform_key) in self._spent
        if performed is None or performed.answer is None or is_spent:
            return _NOT_CHARGED
        return Answer(call.operation.ok_status, performed.result)

    def _performed(self, call: Call) -> _Entry | None:
        return self._entries.get((call.operation.service, "perform", call.perform_key))

    def _entry(self, call: Call) -> _Entry:
        place = (call.operation.service, call.operation.kind, call.key)
        return self._entries.setdefault(place, _Entry(call))

    def _is_spent(self, call: Call) -> bool:
        is_perform = call.operation.kind == "perform"
        return is_perform and (call.operation.service, call.key) in self._spent

    def _takes_effect(self, call: Call) -> bool:
        if call.operation.kind == "perform":
            return True
        place = (call.operation.service, call.perform_key)
        performed = self._performed(call)
        undoes = performed is not None and performed.effects > 0 and place not in self._spent
        self._spent.add(place)
        return undoes

    def _result(self, operation: Operation) -> Body:
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
_NOT_CHARGED = refused(404, "NotCharged", "no charge stands under this key")
_KEY_REUSED = refused(422, "KeyReused", "this key was used with another body: nothing was done")
_IN_PROGRESS = refused(409, "InProgress", "a call with this key is still being worked on")

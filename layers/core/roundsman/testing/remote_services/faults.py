"""What goes wrong on purpose: fault rules, and which of them a call meets.

Pure but for the counters; the dice are seeded, so a run can be repeated. Rules are tried in order:
each that matches adds its latency, and the first whose failure strikes ends the search (the rules
after it do not see the call). `after` and `times` count matching calls; `error_rate` is the share
of the calls that a rule applies to which its failure strikes.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from roundsman.testing.remote_services.contract import Operation
from roundsman.testing.remote_services.values import Answer, Body, Json


@dataclass(frozen=True)
class Refuse:
    """Answer this instead (a status, a redirect); the call has no effect."""

    answer: Answer


@dataclass(frozen=True)
class Hang:
    """Keep the request in front of the service; after `seconds` (None: on release) it goes on."""

    seconds: float | None


@dataclass(frozen=True)
class LoseAnswer:
    """Let the effect happen, then close the connection unanswered, after a silence if asked."""

    silence: Hang | None = None


@dataclass(frozen=True)
class Spoil:
    """Let the effect happen, then send an answer that cannot be read; `size` in bytes if huge."""

    how: Literal["truncate", "nonJson", "hugeBody"]
    size: int = 0


@dataclass(frozen=True)
class ForgetKey:
    """Forget what is known of the key before the call is handled: its effect happens again."""


Failure: TypeAlias = Refuse | Hang | LoseAnswer | Spoil | ForgetKey


@dataclass(frozen=True)
class Target:
    """What rules look at in a call."""

    operation: Operation
    order_id: str
    key: str


@dataclass(frozen=True)
class Rule:
    """One rule as set over HTTP (`given`); None matches anything, and `times` None is for ever."""

    given: Body
    service: str | None = None
    operation: str | None = None
    order_id: str | None = None
    latency_ms: int = 0
    failure: Failure | None = None
    error_rate: float = 1.0
    seed: int = 0
    times: int | None = None
    after: int = 0

    def fits(self, operation: Operation) -> bool:
        """Whether this rule is about an operation, for whichever order."""
        of_service = self.service in (None, operation.service, operation.resource)
        return of_service and self.operation in (None, operation.name, operation.kind)

    def matches(self, target: Target) -> bool:
        """Whether this rule is about a call."""
        return self.order_id in (None, target.order_id) and self.fits(target.operation)


@dataclass(frozen=True)
class Fault:
    """What a call meets: how long it is worked on, and what then fails, if anything."""

    latency_seconds: float = 0.0
    failure: Failure | None = None


@dataclass
class _Counted:
    rule: Rule
    matched: int = 0
    applied: int = 0
    struck: int = 0
    draws: Counter[str] = field(default_factory=Counter)

    def applies(self) -> bool:
        self.matched += 1
        spent = self.rule.times is not None and self.applied >= self.rule.times
        if self.matched <= self.rule.after or spent:
            return False
        self.applied += 1
        return True

    def strikes(self, key: str) -> bool:
        if self.rule.error_rate < 1.0:
            # Drawn per key, not from one sequence: threads that race change nobody's dice.
            self.draws[key] += 1
            if dice(self.rule.seed, key, self.draws[key]) >= self.rule.error_rate:
                return False
        self.struck += 1
        return True


class Faults:
    """A set of rules with their counters. Safe to call from many threads."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self._counted = [_Counted(rule) for rule in rules]

    def meet(self, target: Target) -> Fault:
        """Return what this call meets, and count it."""
        latency_ms = 0
        with self._lock:
            for counted in self._counted:
                rule = counted.rule
                if not rule.matches(target) or not counted.applies():
                    continue
                latency_ms += rule.latency_ms
                if rule.failure is not None and counted.strikes(target.key):
                    return Fault(latency_ms / 1000, rule.failure)
        return Fault(latency_ms / 1000)

    def described(self) -> Body:
        """Return the rules as they were given, and how many calls each has met."""
        with self._lock:
            rules: list[Json] = [{**counted.rule.given} for counted in self._counted]
            counts: list[Json] = [
                {"matched": each.matched, "applied": each.applied, "struck": each.struck}
                for each in self._counted
            ]
        return {"rules": rules, "counts": counts}


def dice(seed: int, key: str, draw: int) -> float:
    """Return a number in [0, 1), the same for the same arguments on every machine."""
    digest = hashlib.sha256(f"{seed}\n{draw}\n{key}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48

"""Fault rules, and the choice of the rules that hit a call.

The only state is the counters. Random choices are seeded, so a run can be repeated. Rules are tried
in order. Each rule that applies adds its latency. The first rule whose failure hits the call ends
the search; the rules after it do not count the call.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from roundsman_testing.remote_services.contract import ServiceOperation
from roundsman_testing.remote_services.values import Answer, Body, Json


@dataclass(frozen=True)
class Refuse:
    """Send this answer, such as an error or a redirect; the call has no effect."""

    answer: Answer


@dataclass(frozen=True)
class Hang:
    """Delay the request before it reaches the service, then handle it."""

    seconds: float | None
    """The delay; None means until a release."""


@dataclass(frozen=True)
class LoseAnswer:
    """Perform the effect, then close the connection without an answer."""

    silence: Hang | None = None
    """The delay before the connection is closed; None means no delay."""


@dataclass(frozen=True)
class Spoil:
    """Perform the effect, then send an answer that the client cannot read."""

    how: Literal["truncate", "nonJson", "hugeBody"]
    size: int = 0
    """The length of a huge body, in bytes."""


@dataclass(frozen=True)
class ForgetKey:
    """Forget the key before the call is handled, so that its effect happens again."""


Failure: TypeAlias = Refuse | Hang | LoseAnswer | Spoil | ForgetKey


@dataclass(frozen=True)
class Target:
    """The properties of a call that rules match."""

    operation: ServiceOperation
    order_id: str
    key: str


@dataclass(frozen=True)
class Rule:
    """One fault rule."""

    given: Body
    """The rule as JSON, as it was set."""
    service: str | None = None
    """The service, or the resource, whose calls match; None means any."""
    operation: str | None = None
    """The name or the kind of the operations that match; None means any."""
    order_id: str | None = None
    """The order whose calls match; None means any."""
    latency_ms: int = 0
    failure: Failure | None = None
    error_rate: float = 1.0
    """The share of the calls to which the rule applies that its failure hits, from 0 to 1."""
    seed: int = 0
    """The seed of the random choice by `error_rate`."""
    times: int | None = None
    """The number of matching calls to which the rule applies; None means all."""
    after: int = 0
    """The number of matching calls before the first to which the rule applies."""

    def fits(self, operation: ServiceOperation) -> bool:
        """Whether this rule matches calls of an operation, for some order."""
        of_service = self.service in (None, operation.service, operation.resource)
        return of_service and self.operation in (None, operation.name, operation.kind)

    def matches(self, target: Target) -> bool:
        """Whether this rule matches a call."""
        return self.order_id in (None, target.order_id) and self.fits(target.operation)


@dataclass(frozen=True)
class ServiceFault:
    """What the rules do to one call: its latency and its failure, if any."""

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
            # Each key has its own random sequence, so races between threads change no result.
            self.draws[key] += 1
            if dice(self.rule.seed, key, self.draws[key]) >= self.rule.error_rate:
                return False
        self.struck += 1
        return True


class ActiveFaults:
    """A set of rules with their counters. Thread-safe."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self._counted = [_Counted(rule) for rule in rules]

    def meet(self, target: Target) -> ServiceFault:
        """Count this call and return its latency and failure."""
        latency_ms = 0
        with self._lock:
            for counted in self._counted:
                rule = counted.rule
                if not rule.matches(target) or not counted.applies():
                    continue
                latency_ms += rule.latency_ms
                if rule.failure is not None and counted.strikes(target.key):
                    return ServiceFault(latency_ms / 1000, rule.failure)
        return ServiceFault(latency_ms / 1000)

    def described(self) -> Body:
        """Return the rules as they were set, and their counters."""
        with self._lock:
            rules: list[Json] = [{**counted.rule.given} for counted in self._counted]
            counts: list[Json] = [
                {"matched": each.matched, "applied": each.applied, "struck": each.struck}
                for each in self._counted
            ]
        return {"rules": rules, "counts": counts}


def dice(seed: int, key: str, draw: int) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the arguments."""
    digest = hashlib.sha256(f"{seed}\n{draw}\n{key}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48

"""The checks by promise, and the judgement of an order by all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from roundsman_console.facts.audit import effect_checks, history_checks, record_checks
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import (
    BrokenPromise,
    Finding,
    Findings,
    StoredOrder,
    Unknown,
)

Check: TypeAlias = Callable[[StoredOrder], Findings]

CHECKS: Final[Mapping[Promise, Check]] = {
    Promise.ALWAYS_DUE: record_checks.always_due,
    Promise.READY: record_checks.ready,
    Promise.ONE_LOCK: record_checks.one_lock,
    Promise.IN_TIME: record_checks.in_time,
    Promise.IN_ORDER: record_checks.in_order,
    Promise.UNDO_IN_ORDER: history_checks.undo_in_order,
    Promise.FAILED_BY: history_checks.failed_by,
    Promise.BOUNDED: record_checks.bounded,
    Promise.AS_PLANNED: history_checks.as_planned,
    Promise.UNDONE: record_checks.undone,
    Promise.COMPLETED: record_checks.completed,
    Promise.TAKEN_BACK: record_checks.taken_back,
    Promise.ENDS: record_checks.ends,
    Promise.AGREES: record_checks.agrees,
    Promise.NOT_LOST: history_checks.not_lost,
    Promise.ACTS_ONCE: history_checks.acts_once,
    Promise.CARRIED_OUT: history_checks.carried_out,
    Promise.ACCOUNTED: history_checks.accounted,
    Promise.HISTORY: history_checks.history_kept,
    Promise.ROWS: record_checks.rows,
    Promise.KEPT: record_checks.kept,
    Promise.ORDER_KEPT: record_checks.order_kept,
    Promise.ERASED: record_checks.erased,
    Promise.ERASED_BESIDE: history_checks.erased_beside,
}
"""The promises that can be judged by what a stack has stored."""

EFFECT_CHECKS: Final[Mapping[Promise, Check]] = {
    Promise.EXPLAINED: effect_checks.explained,
    Promise.ONCE: effect_checks.once,
    Promise.KNOWN: effect_checks.known,
    Promise.UNDONE: effect_checks.undone_effects,
}
"""The promises that can be judged if it is known what stands at the services."""


class Verdict(StrEnum):
    """What is known about one promise to one order. The values are part of the JSON output."""

    FOLLOWED = "followed"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It cannot be judged, or not in every part."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the checks have found about one order."""

    findings: Mapping[Promise, tuple[Finding, ...]] = field(default_factory=dict)
    """The findings of each promise that was checked; empty if it was kept."""

    def verdict(self, promise: Promise) -> Verdict:
        """What is known about the promise. Raises KeyError if it was not checked."""
        found = self.findings[promise]
        if any(isinstance(one, BrokenPromise) for one in found):
            return Verdict.BROKEN
        return Verdict.UNKNOWN if found else Verdict.FOLLOWED

    @property
    def broken(self) -> list[tuple[Promise, BrokenPromise]]:
        """Each way in which a promise was broken."""
        return [
            (promise, one)
            for promise, found in self.findings.items()
            for one in found
            if isinstance(one, BrokenPromise)
        ]

    @property
    def unknown(self) -> list[tuple[Promise, Unknown]]:
        """Why a promise that is not broken cannot be judged, once for each reason."""
        return [
            (promise, one)
            for promise, found in self.findings.items()
            if self.verdict(promise) is Verdict.UNKNOWN
            for one in dict.fromkeys(found)
            if isinstance(one, Unknown)
        ]


def judge(order: StoredOrder) -> Judgement:
    """Judge an order by all checks. Those of effects are left out if no effects are given."""
    found = {promise: tuple(check(order)) for promise, check in CHECKS.items()}
    if order.effects is not None:
        for promise, check in EFFECT_CHECKS.items():
            found[promise] = (*found.get(promise, ()), *check(order))
    return Judgement(found)

"""The checks that need the logs of the functions: what is not to be in them, and what failed.

Each function that failed is set beside the fault or the treatment that made it fail.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roundsman.model.instants import MINUTE
from roundsman_console.base.constraints import Count
from roundsman_console.base.counted import counted
from roundsman_console.facts.audit.stored_order import BrokenPromise, Unknown
from roundsman_dev.prove.application.orders import Treatment, order_of
from roundsman_dev.prove.document import (
    PROCESS_ENDED,
    THROTTLED,
    TIMED_OUT,
    FaultOutcome,
    FunctionLog,
    LoggedFailure,
    ProofDocument,
)

MADE_BY_SERVICES: Final[Mapping[Treatment, str]] = {
    Treatment.RUNS_OUT: TIMED_OUT,
    Treatment.EXITS: PROCESS_ENDED,
}
"""The failure of an agent's function by the treatment that makes it, once for an order."""

AFTERWARDS = MINUTE
"""How long after a fault an invocation may still end that began under it, in ms."""

NO_LOGS = Unknown("the logs were not read")
BUSY_MACHINE = Unknown("a function ran out of time, as it does on a machine that is busy")


@dataclass(frozen=True, slots=True)
class FailureCount:
    """How often a function failed in one way, by its log."""

    function: str
    """`submission`, `scheduler`, `supervisor`, or the name of an agent."""
    what: str
    because: str | None
    """The fault that made it, or what the services did; null if nothing that was made explains
    it."""
    times: Count


def failure_counts(document: ProofDocument) -> Sequence[FailureCount]:
    """Return how often the functions failed, by function, failure and reason."""
    made = _made_by_services(document)
    found: Counter[tuple[str, str, str | None]] = Counter()
    for log in document.logs:
        for failure in log.failures:
            because = _fault_of(document, log, failure)
            treatment = next((t for t, what in MADE_BY_SERVICES.items() if what == failure.what), 0)
            if because is None and treatment and made[log.function, failure.what]:
                made[log.function, failure.what] -= 1
                because = f"the services {treatment}"
            found[log.function, failure.what, because] += 1
    return [FailureCount(*key, times) for key, times in found.items()]


def _fault_of(document: ProofDocument, log: FunctionLog, failure: LoggedFailure) -> str | None:
    for fault in document.faults:
        made = fault.outcome is FaultOutcome.MADE
        during = fault.began_at <= failure.at <= fault.ended_at + AFTERWARDS
        if made and during and (log.function, failure.what) in fault.makes:
            return fault.name
    return None


def _made_by_services(document: ProofDocument) -> Counter[tuple[str, str]]:
    """How often the services made the function of an agent fail, by the ledger."""
    found: Counter[tuple[str, str]] = Counter()
    for row in document.ledger:
        order = order_of(row.order_id)
        if order is None or row.agent is None or not row.calls or row.step != order.struck:
            continue
        what = MADE_BY_SERVICES.get(order.treatment)
        if what is not None and order.refusal(row.step, row.agent) is None:
            found[row.agent, what] += 1
    return found


def not_logged(document: ProofDocument) -> Iterator[BrokenPromise | Unknown]:
    """Check that no line of a log has contents of an order or a credential."""
    yield from _not_read(document)
    for log in document.logs:
        for lines, what in (
            (log.with_contents, "contents of orders"),
            (log.with_credentials, "a credential"),
        ):
            if lines:
                yield BrokenPromise(f"{log.function}: {counted(lines, 'line')} with {what}")


def no_other_failure(document: ProofDocument) -> Iterator[BrokenPromise | Unknown]:
    """Check that no function failed or logged an error but for what was made.

    A call that AWS throttled is made again, and is no failure. A local AWS runs on a machine that
    may be busy, so that a time-out says nothing there.
    """
    yield from _not_read(document)
    for one in failure_counts(document):
        if one.because is not None or one.what == THROTTLED:
            continue
        if document.circumstances.local and one.what == TIMED_OUT:
            yield BUSY_MACHINE
        else:
            yield BrokenPromise(
                f"{one.function}: {one.what}, {counted(one.times, 'time')}, made by no fault"
            )


def failures_logged(document: ProofDocument) -> Iterator[BrokenPromise | Unknown]:
    """Check that the log of an agent has the kinds of failure that its services made.

    Whoever looks for the reason of a dead letter finds it there. How often is not checked: the
    ledger may count a call that was repeated on its way, and then nothing failed.
    """
    yield from _not_read(document)
    logs = {log.function: log for log in document.logs}
    for (agent, what), times in _made_by_services(document).items():
        log = logs.get(agent)
        if log is None or not log.lines or log.unread:
            continue
        if all(one.what != what for one in log.failures):
            yield BrokenPromise(
                f"{agent}: no line says that {what}, as it did {counted(times, 'time')}"
            )


def _not_read(document: ProofDocument) -> Iterator[Unknown]:
    if not document.logs:
        yield NO_LOGS
    for log in document.logs:
        if log.unread:
            yield Unknown(f"the log of {log.function}: {log.unread}")
        elif not log.lines:
            yield Unknown(f"the log of {log.function} has no line")

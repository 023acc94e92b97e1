"""Judges a proof: each promise to its orders, as an audit does, and those of the run as a whole.

The records, the histories and the order rows are judged by the checks of an audit. Those of effects
get what the ledger says. The others are here and in `log_checks`: each is a pure function of the
document, which yields what it finds broken, or why it cannot be judged.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from roundsman_console.facts.audit.checks import Verdict, judge
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import (
    BrokenPromise,
    StandingEffect,
    StoredOrder,
    Unknown,
)
from roundsman_dev.prove.application.orders import ExpectedEnd, order_of
from roundsman_dev.prove.document import LedgerRow, ProofDocument
from roundsman_dev.prove.log_checks import failures_logged, no_other_failure, not_logged
from roundsman_dev.prove.promises import RunPromise

AnyPromise: TypeAlias = Promise | RunPromise

REJECTED = "RejectedQueue"

NOT_READ = Unknown("something of the order could not be read")
NOT_FINISHED = Unknown("the time was over before every order had ended")
NOT_ENDED = Unknown("it has not ended")


@dataclass(frozen=True, slots=True)
class Found:
    """What a check has found: of an order, or of the run (`order_id` is None)."""

    order_id: str | None
    finding: BrokenPromise | Unknown


Findings: TypeAlias = Iterator[Found]
RunCheck: TypeAlias = Callable[[ProofDocument], Findings]


@dataclass(slots=True)
class PromiseResult:
    """What is known of one promise."""

    promise: AnyPromise
    judged: int = 0
    """The number of orders of which it was judged; 1 for a promise of the run as a whole."""
    violations: list[Found] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """How often it cannot be judged, by reason."""

    @property
    def verdict(self) -> Verdict:
        """What is known of it: broken if it is broken once, unknown if a part cannot be judged."""
        if self.violations:
            return Verdict.BROKEN
        return Verdict.UNKNOWN if self.unknown or not self.judged else Verdict.FOLLOWED


def check_proof(document: ProofDocument) -> dict[AnyPromise, PromiseResult]:
    """Judge a proof by every promise that it shows. The promises of the run come first."""
    results: dict[AnyPromise, PromiseResult] = {}
    for of_run, check in RUN_CHECKS.items():
        result = results[of_run] = PromiseResult(of_run, judged=1)
        for found in check(document):
            _add(result, found)
    for promise, per_key in LEDGER_CHECKS.items():
        result = results[promise] = PromiseResult(promise, judged=len(document.ledger))
        for row in document.ledger:
            for broken in per_key(row):
                _add(result, Found(row.order_id, broken))
    for order in with_effects(document):
        judgement = judge(order)
        for promise in judgement.findings:
            results.setdefault(promise, PromiseResult(promise)).judged += 1
        for promise, broken in judgement.broken:
            _add(results[promise], Found(order.task.task_id, broken))
        for promise, unknown in judgement.unknown:
            if order.task.ended or promise is not Promise.ENDS:  # ENDED says that
                _add(results[promise], Found(order.task.task_id, unknown))
    return results


def _add(result: PromiseResult, found: Found) -> None:
    if isinstance(found.finding, BrokenPromise):
        result.violations.append(found)
    else:
        result.unknown[found.finding.why] += 1


def with_effects(document: ProofDocument) -> Iterator[StoredOrder]:
    """Yield the orders, each with the effects that the ledger says stand."""
    standing: dict[str, list[StandingEffect]] = {}
    for row in document.ledger:
        if row.stands or row.effects > 1:
            effect = StandingEffect(row.step, row.key, row.effects)
            standing.setdefault(row.order_id, []).append(effect)
    for order in document.orders:
        yield replace(order, effects=standing.get(order.task.task_id, []))


# --- Of the run ---------------------------------------------------------------------------------


def accepted(document: ProofDocument) -> Findings:
    """Check that the orders that are stored are those that were sent."""
    sent = {one.order_id for one in document.sent}
    stored = Counter(order.task.task_id for order in document.orders)
    for order_id in sorted(sent - stored.keys() - document.unread.keys()):
        yield Found(order_id, BrokenPromise("it was sent, and is not stored"))
    for order_id in sorted(stored.keys() - sent):
        yield Found(order_id, BrokenPromise("it is stored, and was not sent"))
    for order_id, times in stored.items():
        if times > 1:
            yield Found(order_id, BrokenPromise(f"it is stored {times} times"))
    for order in document.orders:
        expected = order_of(order.task.task_id)
        if expected is not None and order.task.workflow != expected.workflow:
            what = f"it is stored with the workflow {order.task.workflow}"
            yield Found(order.task.task_id, BrokenPromise(what))
    for order_id in document.unread:
        yield Found(order_id, NOT_READ)


def ended(document: ProofDocument) -> Findings:
    """Check that every order has ended."""
    for order in document.orders:
        if not order.task.ended:
            yield Found(order.task.task_id, BrokenPromise(f"it is {order.task.state}"))


def as_answered(document: ProofDocument) -> Findings:
    """Check that each order ended in the state to which the answers of its services lead."""
    for order in document.orders:
        due, state = _due(order.task.task_id), order.task.state
        if due is None:
            continue
        if not order.task.ended:
            yield Found(order.task.task_id, NOT_ENDED)
        elif state != due.state:
            what = f"it is {state}, and was to be {due.state}"
            yield Found(order.task.task_id, BrokenPromise(what))


def standing(document: ProofDocument) -> Findings:
    """Check that the effects that stand are those of the end that each order was to have."""
    sent = {one.order_id for one in document.sent}
    found: dict[str, set[str]] = {order_id: set() for order_id in sent}
    for row in document.ledger:
        if row.stands:
            found.setdefault(row.order_id, set()).add(row.step)
    open_orders = {order.task.task_id for order in document.orders if not order.task.ended}
    for order_id, steps in sorted(found.items()):
        due = _due(order_id) if order_id in sent else None
        expected = frozenset[str]() if due is None else due.standing
        if order_id in open_orders:
            yield Found(order_id, NOT_ENDED)
        elif steps != expected:
            missing, beyond = sorted(expected - steps), sorted(steps - expected)
            parts = [f"{', '.join(missing)} does not stand"] if missing else []
            parts += [f"{', '.join(beyond)} stands"] if beyond else []
            yield Found(order_id, BrokenPromise(" and ".join(parts)))


def not_after_undo(document: ProofDocument) -> Findings:
    """Check that no effect came about under a key after that was undone."""
    for row in document.ledger:
        if row.undone_at is None:
            continue
        if row.stands or (row.took_at is not None and row.took_at > row.undone_at):
            yield Found(row.order_id, BrokenPromise(f"{row.key} came about after it was undone"))


def nothing_waits(document: ProofDocument) -> Findings:
    """Check that no queue has a message that could be read.

    A message that was sent ahead waits for its time; it does nothing then if its order has ended.
    """
    if not document.circumstances.finished:
        yield Found(None, NOT_FINISHED)
        return
    for queue in document.queues:
        if queue.name != REJECTED and (queue.waiting or queue.in_flight):
            what = f"{queue.name} has {queue.waiting + queue.in_flight} messages"
            yield Found(None, BrokenPromise(what))


def not_given_up(document: ProofDocument) -> Findings:
    """Check that nothing was given up that would be lost by that."""
    for queue in document.queues:
        if queue.dead and not queue.has_requests:
            yield Found(None, BrokenPromise(f"{queue.name} has given up {queue.dead} messages"))
        if queue.name == REJECTED and (queue.waiting or queue.in_flight):
            yield Found(
                None, BrokenPromise(f"{queue.waiting + queue.in_flight} messages are rejected")
            )


def _of_logs(check: Callable[[ProofDocument], Iterator[BrokenPromise | Unknown]]) -> RunCheck:
    return lambda document: (Found(None, one) for one in check(document))


def adds_up(document: ProofDocument) -> Findings:
    """Check the numbers of orders by state, and of effects, against those that were to be."""
    if not document.circumstances.finished or document.unread:
        yield Found(None, NOT_FINISHED if not document.circumstances.finished else NOT_READ)
        return
    due = [end for one in document.sent if (end := _due(one.order_id)) is not None]
    expected = Counter(end.state for end in due)
    found = Counter(str(order.task.state) for order in document.orders)
    for state in sorted(expected.keys() | found.keys()):
        if found[state] != expected[state]:
            what = f"{found[state]} orders are {state}, and {expected[state]} were to be"
            yield Found(None, BrokenPromise(what))
    effects = sum(row.stands for row in document.ledger)
    wanted = sum(len(end.standing) for end in due)
    if effects != wanted:
        yield Found(None, BrokenPromise(f"{effects} effects stand, and {wanted} were to"))


def _due(order_id: str) -> ExpectedEnd | None:
    order = order_of(order_id)
    return None if order is None else order.end


RUN_CHECKS: Final[Mapping[RunPromise, RunCheck]] = {
    RunPromise.ACCEPTED: accepted,
    RunPromise.ENDED: ended,
    RunPromise.AS_ANSWERED: as_answered,
    RunPromise.STANDING: standing,
    RunPromise.NOT_AFTER_UNDO: not_after_undo,
    RunPromise.NOTHING_WAITS: nothing_waits,
    RunPromise.NOT_GIVEN_UP: not_given_up,
    RunPromise.NOT_LOGGED: _of_logs(not_logged),
    RunPromise.NO_OTHER_FAILURE: _of_logs(no_other_failure),
    RunPromise.FAILURES_LOGGED: _of_logs(failures_logged),
    RunPromise.ADDS_UP: adds_up,
}
"""The checks of the run as a whole."""


# --- Of a key of the ledger ---------------------------------------------------------------------


def one_input(row: LedgerRow) -> Iterator[BrokenPromise]:
    """Check that all requests under one key had the same order, item and earlier results."""
    if len(row.inputs) > 1:
        yield BrokenPromise(f"{row.key} was asked for {len(row.inputs)} different things")


def acts_in_time(row: LedgerRow) -> Iterator[BrokenPromise]:
    """Check that no call under the key began after the complete-by of its request."""
    if row.late:
        yield BrokenPromise(f"{row.late} calls of {row.key} began after their complete-by")


LEDGER_CHECKS: Final[Mapping[Promise, Callable[[LedgerRow], Iterator[BrokenPromise]]]] = {
    Promise.ONE_INPUT: one_input,
    Promise.ACTS_IN_TIME: acts_in_time,
}
"""The checks of each key of the ledger."""

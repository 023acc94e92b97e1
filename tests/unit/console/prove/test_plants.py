"""Each planted fault is reported by its promise, and a sound proof has none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from roundsman.engine.due import Lane, lane_key
from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect
from roundsman_console.facts.audit.checks import EFFECT_CHECKS
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import StoredOrder
from roundsman_dev.prove.application.orders import MARKER, Treatment, order_id, order_of
from roundsman_dev.prove.checks import LEDGER_CHECKS, RUN_CHECKS, AnyPromise, check_proof
from roundsman_dev.prove.document import LedgerRow, ProofDocument, SentOrder
from roundsman_dev.prove.function_logs import function_log
from roundsman_dev.prove.promises import RunPromise
from tests.support.steps import changed_step
from tests.unit.console.prove.sound import sound

R, P = RunPromise, Promise
Alter = Callable[[ProofDocument], ProofDocument]


def broken(document: ProofDocument) -> set[AnyPromise]:
    return {promise for promise, found in check_proof(document).items() if found.violations}


# --- Alterations --------------------------------------------------------------------------------


def named(workflow: str, *, refused: bool = False) -> str:
    """The first order of a workflow that is completed, or refused."""
    for one in sound().sent:
        asked = order_of(one.order_id)
        if asked is not None and (asked.workflow, asked.is_refused) == (workflow, refused):
            return one.order_id
    raise AssertionError(f"no order of {workflow}")


def refused_order() -> str:
    """An order that was refused, so that what it had done was undone."""
    for one in sound().sent:
        asked = order_of(one.order_id)
        if asked is not None and asked.end.state == "Undone":
            return one.order_id
    raise AssertionError("no order is undone")


def order(name: str, change: Callable[[StoredOrder], StoredOrder]) -> Alter:
    """Another record of one order."""

    def alter(document: ProofDocument) -> ProofDocument:
        changed = [change(one) if one.task.task_id == name else one for one in document.orders]
        return replace(document, orders=changed)

    return alter


def task(name: str, **changes: object) -> Alter:
    return order(
        name,
        lambda one: replace(one, task=replace(one.task, **changes)),  # type: ignore[arg-type]
    )


def step(name: str, which: str, **changes: object) -> Alter:
    """Other stored attributes of a step."""

    def change(one: StoredOrder) -> StoredOrder:
        record = changed_step(one.task.step(which), **changes)
        return replace(one, task=replace(one.task, steps={**one.task.steps, which: record}))

    return order(name, change)


def ledger(change: Callable[[list[LedgerRow]], Sequence[LedgerRow]]) -> Alter:
    return lambda document: replace(document, ledger=change(list(document.ledger)))


def row(key: str, **changes: object) -> Alter:
    """Another row of the ledger under a key that there is."""
    assert any(one.key == key for one in sound().ledger), key
    return ledger(
        lambda rows: [
            replace(one, **changes) if one.key == key else one  # type: ignore[arg-type]
            for one in rows
        ]
    )


def more(**values: object) -> Alter:
    """One more row of the ledger."""
    return ledger(lambda rows: [*rows, LedgerRow(**values)])  # type: ignore[arg-type]


def queue(name: str, **changes: object) -> Alter:
    def alter(document: ProofDocument) -> ProofDocument:
        assert any(one.name == name for one in document.queues), name
        changed = [
            replace(one, **changes)  # type: ignore[arg-type]
            if one.name == name
            else one
            for one in document.queues
        ]
        return replace(document, queues=changed)

    return alter


def logged(function: str, *lines: str) -> Alter:
    """More lines in the log of a function, a minute after the proof began."""

    def alter(document: ProofDocument) -> ProofDocument:
        at = document.circumstances.began_at + MINUTE
        more = function_log(function, [(at, line) for line in lines])
        changed = [
            replace(
                one,
                with_contents=one.with_contents + more.with_contents,
                with_credentials=one.with_credentials + more.with_credentials,
                failures=(*one.failures, *more.failures),
            )
            if one.function == function
            else one
            for one in document.logs
        ]
        return replace(document, logs=changed)

    return alter


def no_failures_logged(document: ProofDocument) -> ProofDocument:
    return replace(document, logs=[replace(one, failures=()) for one in document.logs])


def without_failures(one: StoredOrder) -> StoredOrder:
    return replace(one, history=[row for row in one.history or () if row.kind != "failed"])


def with_later_history(one: StoredOrder) -> StoredOrder:
    last = (one.history or ())[-1]
    return replace(one, history=[*(one.history or ()), replace(last, seq=last.seq + 10_000)])


def ends_as(state: TaskState) -> Callable[[StoredOrder], StoredOrder]:
    def change(one: StoredOrder) -> StoredOrder:
        ending = one.task.ending
        assert ending is not None
        return replace(one, task=replace(one.task, ending=replace(ending, how=state)))

    return change


# --- Plants -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plant:
    promise: AnyPromise
    what: str
    alter: Alter


LINE, ITEMS = named("line"), named("items")
GONE = refused_order()
FIRST = {name: f"{name}/reserve/perform" for name in (LINE, GONE)}
STRANGER = order_id("prove-ffffff", 3)

PLANTS = (
    Plant(
        R.ACCEPTED,
        "an order was lost before it was stored",
        lambda found: replace(found, orders=found.orders[1:]),
    ),
    Plant(
        R.ACCEPTED,
        "a repeated event became a second order",
        lambda found: replace(found, orders=[*found.orders, found.orders[0]]),
    ),
    Plant(
        R.ACCEPTED,
        "an order is stored that nobody sent",
        order(LINE, lambda one: replace(one, task=replace(one.task, task_id=STRANGER))),
    ),
    Plant(R.ACCEPTED, "an order got another workflow", task(LINE, workflow="archive")),
    Plant(
        R.ENDED,
        "an order waits for ever for a queue that is behind",
        task(LINE, state=TaskState.RETRY, ended_at=None),
    ),
    Plant(
        R.AS_ANSWERED,
        "a backlog undoes a healthy order",
        task(LINE, state=TaskState.UNDONE),
    ),
    Plant(
        R.STANDING,
        "an undo leaves the effect of an item",
        more(key=f"{GONE}/pick[1]/perform", effects=1, stands=True),
    ),
    Plant(R.STANDING, "the effect of a completed order is gone", row(FIRST[LINE], stands=False)),
    Plant(
        R.NOT_AFTER_UNDO,
        "a late request acts after the undo",
        row(FIRST[GONE], took_at=2_000_000_000_000),
    ),
    Plant(R.NOT_AFTER_UNDO, "what was undone stands", row(FIRST[GONE], stands=True)),
    Plant(R.NOTHING_WAITS, "a command waits for ever", queue("SchedulerQueue", waiting=1)),
    Plant(R.NOTHING_WAITS, "a reply is hidden for ever", queue("StockReplyQueue", in_flight=1)),
    Plant(
        R.NOT_GIVEN_UP,
        "a reply is given up while a table throttles",
        queue("StockReplyQueue", dead=1),
    ),
    Plant(R.NOT_GIVEN_UP, "an order event is rejected", queue("RejectedQueue", waiting=1)),
    Plant(
        R.NOT_LOGGED,
        "a line has what was ordered",
        logged("scheduler", f'{{"message": "decided", "input": {{"customer": "{MARKER}"}}}}'),
    ),
    Plant(
        R.NOT_LOGGED,
        "the text of an exception quotes the order",
        logged("stock", f"KeyError: '{MARKER}'"),
    ),
    Plant(R.NOT_LOGGED, "a line has a key of AWS", logged("stock", "ASIA" + 16 * "7")),
    Plant(
        R.NO_OTHER_FAILURE,
        "an exception is not handled",
        logged("supervisor", '{"level": "ERROR", "errorType": "KeyError", "message": "x"}'),
    ),
    Plant(
        R.NO_OTHER_FAILURE,
        "a function cannot handle a message",
        logged("scheduler", '{"level": "ERROR", "message": "it failed", "service": "scheduler"}'),
    ),
    Plant(
        R.NO_OTHER_FAILURE,
        "a process ends that no service made end",
        logged("payment", '{"type": "platform.report", "record": {"status": "error"}}'),
    ),
    Plant(
        R.FAILURES_LOGGED,
        "the log of an agent does not say that its process has ended",
        no_failures_logged,
    ),
    Plant(
        R.ADDS_UP,
        "an order is counted that was never sent",
        lambda found: replace(found, sent=found.sent[:-1]),
    ),
    Plant(
        R.ADDS_UP,
        "an effect stands of which no order knows",
        more(key=f"{LINE}/wrap/perform", effects=1, stands=True),
    ),
    Plant(
        P.ONE_INPUT,
        "another input is sent under the same key",
        row(FIRST[LINE], inputs=frozenset({"a", "b"})),
    ),
    Plant(P.ACTS_IN_TIME, "an agent acts after complete-by", row(FIRST[LINE], late=1)),
    Plant(P.ONCE, "an effect comes about twice under its key", row(FIRST[LINE], effects=2)),
    Plant(
        P.ONCE,
        "a step stands under two keys",
        more(key=f"{FIRST[LINE]}/2", effects=1, stands=True),
    ),
    Plant(
        P.EXPLAINED,
        "an effect stands of a step that was never claimed",
        more(key=f"{LINE}/wrap/perform", effects=1, stands=True),
    ),
    Plant(P.EXPLAINED, "the effect of a Processed step is missing", row(FIRST[LINE], stands=False)),
    Plant(
        P.KNOWN,
        "a step counts as without effect while it stands",
        step(LINE, "reserve", effect=Effect.NONE),
    ),
    Plant(P.UNDONE, "an effect stands of an order that is Undone", row(FIRST[GONE], stands=True)),
    Plant(
        P.UNDONE,
        "a step of an order that is Undone was not undone",
        step(GONE, "reserve", process_state=ProcessState.PROCESSED),
    ),
    Plant(
        P.IN_ORDER,
        "a step was begun before its predecessor was done",
        step(LINE, "charge", started_at=1),
    ),
    Plant(
        P.IN_TIME,
        "a step was begun after the time of its task",
        task(LINE, complete_by=sound().sent[0].at - MINUTE),
    ),
    Plant(
        P.COMPLETED,
        "an order is Completed without its last step",
        step(LINE, "ship", process_state=ProcessState.PENDING),
    ),
    Plant(
        P.AGREES,
        "an order that has ended is in the lane of open ones",
        task(LINE, lane=lane_key(Lane.OPEN, 0)),
    ),
    Plant(P.FAILED_BY, "an order fails and nothing has failed", order(GONE, without_failures)),
    Plant(
        P.AS_PLANNED,
        "an order that is to be undone becomes Archived",
        order(GONE, ends_as(TaskState.ARCHIVED)),
    ),
    Plant(P.HISTORY, "a failed attempt has no row", step(LINE, "reserve", failure_count=2)),
    Plant(
        P.NOT_LOST, "an older record has overwritten a newer one", order(GONE, with_later_history)
    ),
    Plant(P.KEPT, "an order that has ended expires at once", task(LINE, expires_at=1_000)),
    Plant(
        P.ORDER_KEPT,
        "the row of an order is gone",
        order(LINE, lambda one: replace(one, row=None)),
    ),
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda one: one.what)
def test_a_planted_fault_is_reported_by_its_promise(plant: Plant) -> None:
    assert plant.promise in broken(plant.alter(sound()))


def test_a_sound_proof_breaks_no_promise() -> None:
    assert broken(sound()) == set()


def test_every_treatment_and_workflow_is_in_the_sound_proof() -> None:
    """Or a check might never see what it is for."""
    asked = [order_of(one.order_id) for one in sound().sent]
    assert {one.treatment for one in asked if one is not None} == set(Treatment)
    assert len({one.workflow for one in asked if one is not None}) == 8


def test_every_promise_of_the_run_of_the_ledger_and_of_effects_has_a_planted_fault() -> None:
    planted = {plant.promise for plant in PLANTS}
    assert planted >= RUN_CHECKS.keys() | LEDGER_CHECKS.keys() | EFFECT_CHECKS.keys()


def test_what_could_not_be_read_is_no_violation() -> None:
    found = replace(sound(), orders=sound().orders[1:], unread={sound().sent[0].order_id: "broken"})
    assert R.ACCEPTED not in broken(found)
    assert check_proof(found)[R.ACCEPTED].unknown
    assert R.ADDS_UP not in broken(found)


def test_a_queue_is_not_judged_before_everything_has_ended() -> None:
    busy = replace(sound(), circumstances=replace(sound().circumstances, finished=False))
    found = queue("SchedulerQueue", waiting=5)(busy)
    assert broken(found) == set()
    assert check_proof(found)[R.NOTHING_WAITS].unknown


def test_a_request_that_was_given_up_is_no_loss() -> None:
    """Its step was asked for again."""
    assert broken(queue("StockRequestQueue", dead=3)(sound())) == set()


def test_a_message_that_was_sent_ahead_may_wait_for_its_time() -> None:
    assert broken(queue("SchedulerQueue", delayed=3)(sound())) == set()


def test_an_order_that_is_sent_and_not_yet_read_back_is_missing() -> None:
    late = SentOrder(order_id("prove-1a2b3c", 999), 0)
    found = replace(sound(), sent=[*sound().sent, late])
    assert R.ACCEPTED in broken(found)

"""Bulk runs: the supervisors carry them out, whatever happens to them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Step, Workflow
from roundsman.engine.bulk_eligibility import CHANGED, NOT_BY_THIS_RUN
from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import (
    BulkRecord,
    OrderResult,
    PlannedOrder,
    RequestAction,
    Run,
    RunRequest,
    RunState,
    Terms,
)
from roundsman.model.events import (
    Cancel,
    CommandSource,
    HistoryRow,
    OperatorEvent,
    Resubmit,
    UndoAsked,
)
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from roundsman_testing import Fault, Faults, World, crash_everywhere
from roundsman_testing.world.queues import COMMANDS, OPERATOR_SENDER
from tests.world.shop import (
    FENCED,
    MINUTE,
    ONCE,
    a_step,
    a_workflow,
    deliver,
    meanwhile,
    waiting,
)

RUN = "b-00000001"
STARTER = "AROAOPERATOR:amy"
TERMS = Terms(canary=0)


def a_world(faults: Faults | None = None, supervisors: int = 1) -> World:
    shop = a_workflow(a_step("mail", retry=ONCE), on_failure=Archive())
    return World(shop, faults=faults or Faults(), supervisors=supervisors)


def a_patient_world(faults: Faults) -> World:
    """A world in which one lost attempt fails no order."""
    return World(a_workflow(a_step("mail"), on_failure=Archive()), faults=faults)


def archived(world: World, count: int) -> list[str]:
    """So many orders whose mail was refused; the service is mended."""
    world.on("mail").refuses("NoAddress", times=count)
    orders = [world.submit() for _ in range(count)]
    world.run(until=lambda: all(_state(world, one) is TaskState.ARCHIVED for one in orders))
    world.run(for_=timedelta(seconds=1))
    return orders


def _state(world: World, order: str) -> TaskState | None:
    try:
        return world.task(order).state
    except LookupError:
        return None


def start(
    world: World,
    orders: list[str],
    terms: Terms = TERMS,
    event: OperatorEvent | None = None,
    *,
    pinned: bool = False,
) -> None:
    """Start a run over these orders, as a person does; `pinned` to their tasks as they are."""
    event = event or Resubmit(CommandSource(RUN, "amy", "mail is back"))
    run = Run(
        RUN,
        event,
        "amy",
        STARTER,
        "mail is back",
        "--group f-1",
        world.now,
        len(orders),
        terms,
        pins_versions=pinned,
    )
    planned = [PlannedOrder(one, world.task(one).version if pinned else None) for one in orders]
    world.processes.bulk_runs.begin(run, planned)


def asks(world: World, action: RequestAction) -> None:
    request = RunRequest(action, "eve", "AROAOPERATOR:eve", "routine", world.now)
    assert world.processes.bulk_runs.ask(RUN, request, seen=record(world).asked_at)


def record(world: World) -> BulkRecord:
    found = world.processes.bulk_runs.load(RUN, STARTER)
    assert found is not None
    return found


def states(world: World, orders: list[str]) -> Counter[str]:
    return Counter(world.task(one).state.value for one in orders)


def taken(world: World, order: str) -> list[HistoryRow]:
    """The rows of the run's command in the order's history."""
    return [row for row in world.history(order) if row.command_id == RUN]


def sends(world: World) -> list[int]:
    """From now on: when the scheduler receives each command of a run, in epoch ms."""
    found: list[int] = []
    put = world.post.post_as_supervisor

    def post(body: str, delay: int) -> None:
        found.append(world.now + -(-delay // SECOND) * SECOND)
        put(body, delay)

    world.post.post_as_supervisor = post
    return found


def test_a_run_is_carried_out_without_anybody_and_its_rows_name_run_and_person() -> None:
    world = a_world()
    orders = archived(world, 12)
    start(world, orders, Terms(canary=5))
    world.run()
    assert states(world, orders) == {"Completed": 12}
    found = record(world)
    assert (found.state, found.progress.sent, found.left) == (RunState.FINISHED, 12, 0)
    assert found.progress.count(OrderResult.COMPLETED) == 12
    for order in orders:
        [row] = taken(world, order)
        assert (row.kind, row.by, row.sender) == ("resubmit", "amy", STARTER)
        assert RUN in row.reason
    assert world.processes.bulk_runs.open_runs() == []
    kinds = [alert.attributes["kind"] for alert in world.post.alerts]
    assert "foreign_command" not in kinds


def test_the_start_of_a_principal_that_is_no_operator_is_alerted() -> None:
    world = a_world()
    orders = archived(world, 1)
    event = Resubmit(CommandSource(RUN, "mallory"))
    run = Run(RUN, event, "mallory", "AIDASTRANGER", "", "", world.now, 1, TERMS)
    world.processes.bulk_runs.begin(run, [PlannedOrder(one) for one in orders])
    world.run()
    texts = [
        alert.sms for alert in world.post.alerts if alert.attributes["kind"] == "foreign_command"
    ]
    assert len(texts) == 1
    assert "AIDASTRANGER" in texts[0]
    assert taken(world, orders[0])[0].sender == "AIDASTRANGER"


def test_nobody_but_the_supervisor_is_believed_about_who_started_a_run() -> None:
    world = a_world()
    [order] = archived(world, 1)
    forged = CommandSource("c-1", "eve", forwarded_for=STARTER)
    world.operator.ask(order, Resubmit(forged))
    world.run()
    [row] = [row for row in world.history(order) if row.command_id == "c-1"]
    assert row.sender == OPERATOR_SENDER


@pytest.mark.verify
def test_the_scheduler_gets_the_commands_of_one_visit_one_after_another() -> None:
    world = a_world()
    orders = archived(world, 100)
    at = sends(world)
    start(world, orders, Terms(canary=0, rate=2))
    world.run()
    assert len(at) == 100
    assert max(at) - min(at) == pytest.approx(50 * SECOND, rel=0.1)


def test_the_canary_goes_first_and_a_service_that_is_still_down_gets_no_more() -> None:
    world = a_world()
    orders = archived(world, 20)
    world.on("mail").refuses("NoAddress", times=20)
    start(world, orders, Terms(canary=5))
    world.run()
    found = record(world)
    assert found.state is RunState.STOPPED
    assert found.why.endswith("of the first 5 failed again, more than 20%")
    assert found.progress.sent == 5
    assert sum(bool(taken(world, one)) for one in orders) == 5
    notes = world.processes.bulk_runs.notes(record(world))
    assert sorted(one.order for one in notes if one.failed) == sorted(
        one for one in orders if taken(world, one)
    )
    assert "NoAddress" in notes[0].reason


def test_a_stopped_run_is_resumed_with_a_canary_and_what_failed_again_is_not_tried_again() -> None:
    world = a_world()
    orders = archived(world, 8)
    world.on("mail").refuses("NoAddress", times=2)
    start(world, orders, Terms(canary=2))
    world.run()
    assert record(world).state is RunState.STOPPED
    asks(world, RequestAction.RESUME)
    world.run()
    found = record(world)
    assert found.state is RunState.FINISHED
    assert states(world, orders) == {"Archived": 2, "Completed": 6}
    assert [one.split(" at ")[0] for one in found.requests] == ["resumed"]
    assert "eve (AROAOPERATOR:eve): routine" in found.requests[0]


@pytest.mark.verify
def test_a_service_that_breaks_midway_stops_the_run() -> None:
    world = a_world()
    orders = archived(world, 120)
    start(world, orders, Terms(canary=3, rate=0.5))
    world.run(until=lambda: record(world).progress.count(OrderResult.COMPLETED) > 10)
    world.on("mail").refuses("NoAddress", times=1000)
    world.run()
    found = record(world)
    assert found.state is RunState.STOPPED
    assert found.progress.sent < 120
    assert found.progress.count(OrderResult.FAILED) >= 3
    assert found.progress.results == found.progress.sent


@pytest.mark.verify
def test_a_run_that_is_paused_in_the_middle_goes_on_where_it_was() -> None:
    world = a_world()
    orders = archived(world, 60)
    at = sends(world)
    start(world, orders, Terms(canary=0, rate=0.5))
    world.run(until=lambda: record(world).progress.sent > 0)
    asks(world, RequestAction.PAUSE)
    world.run()
    paused = record(world)
    assert paused.state is RunState.PAUSED
    assert paused.progress.sent == len(at) < 60
    assert paused.progress.results == paused.progress.sent
    assert world.processes.bulk_runs.open_runs() == []
    world.run(for_=timedelta(hours=1))
    assert len(at) == paused.progress.sent
    asks(world, RequestAction.RESUME)
    world.run()
    assert record(world).state is RunState.FINISHED
    assert states(world, orders) == {"Completed": 60}
    assert len(at) == 60


def test_a_run_that_a_person_stops_sends_nothing_after_what_was_sent() -> None:
    world = a_world()
    orders = archived(world, 60)
    at = sends(world)
    start(world, orders, Terms(canary=0, rate=0.5))
    world.run(until=lambda: record(world).progress.sent > 0)
    asks(world, RequestAction.STOP)
    world.run()
    found = record(world)
    assert (found.state, found.why) == (RunState.STOPPED, "by eve (AROAOPERATOR:eve): routine")
    assert len(at) == found.progress.sent < 60


def test_an_order_that_goes_on_by_itself_meanwhile_is_refused_with_its_sentence() -> None:
    world = a_world()
    orders = archived(world, 3)
    world.operator.resubmit(orders[1])
    world.run()
    start(world, orders)
    world.run()
    found = record(world)
    assert found.progress.refusals == 1
    [note] = world.processes.bulk_runs.notes(record(world))
    assert (note.order, note.failed) == (orders[1], False)
    assert note.reason == "only a task that ended with a failure can be resubmitted"


def test_a_task_that_moves_between_the_send_and_the_command_is_assessed_again() -> None:
    world = a_world()
    [order] = archived(world, 1)
    world.mail("commands", RUN).is_late(by=timedelta(seconds=30))
    start(world, [order])
    world.run(until=lambda: record(world).progress.sent > 0)
    world.operator.resubmit(order)
    world.run()
    assert [row.kind for row in taken(world, order)] == ["refused"]
    found = record(world)
    assert (found.state, found.progress.sent) == (RunState.FINISHED, 1)
    [note] = world.processes.bulk_runs.notes(record(world))
    assert note.reason == "only a task that ended with a failure can be resubmitted"


def test_a_command_that_sqs_loses_is_sent_again() -> None:
    world = a_world()
    [order] = archived(world, 1)
    world.mail("commands", RUN).is_lost()
    at = sends(world)
    start(world, [order])
    world.run()
    assert states(world, [order]) == {"Completed": 1}
    assert len(at) == 2


@pytest.mark.verify
def test_of_two_supervisors_each_order_gets_one_command() -> None:
    world = a_world(supervisors=2)
    orders = archived(world, 60)
    at = sends(world)
    start(world, orders, Terms(canary=5, rate=1))
    world.run()
    assert record(world).state is RunState.FINISHED
    assert len(at) == 60
    assert all(len(taken(world, one)) == 1 for one in orders)


def test_a_supervisor_that_was_overtaken_sends_nothing() -> None:
    world = a_world()
    orders = archived(world, 10)
    at = sends(world)
    start(world, orders)
    met: list[str] = []

    def overtakes(call: str) -> None:
        """Another supervisor stores the progress just before this one does."""
        if call == "write_bulk" and not met:
            met.append(call)
            other = replace(record(world), carrier="another", carried_until=world.now + 60_000)
            assert world.processes.bulk_runs.save(other)

    world.faults.before_each(overtakes)
    world.run(until=lambda: bool(met))
    assert at == []
    world.run()
    assert len(at) == 10


def _repaired(count: int, terms: Terms) -> Callable[[World], None]:
    def story(world: World) -> None:
        world.on("mail").refuses("NoAddress")
        orders = [world.submit() for _ in range(count)]
        world.run()
        assert states(world, orders) == {"Archived": count}
        world.on("mail").is_up()
        start(world, orders, terms)
        world.run()
        assert states(world, orders) == {"Completed": count}
        found = record(world)
        assert found.state is RunState.FINISHED
        assert found.progress.count(OrderResult.COMPLETED) == count
        for order in orders:
            assert [row.kind for row in taken(world, order)] == ["resubmit"]

    return story


@pytest.mark.verify
def test_a_supervisor_may_die_at_every_call_of_a_visit_and_each_order_is_repaired_once() -> None:
    report = crash_everywhere(_repaired(3, Terms(canary=1)), a_patient_world)
    assert {"read_bulk_list", "read_bulk", "write_bulk", "send_commands", "close_bulk"} <= set(
        report.calls
    )


@pytest.mark.verify
def test_it_may_die_again_while_another_takes_over() -> None:
    crash_everywhere(
        _repaired(2, TERMS), a_patient_world, faults=(Fault.CRASH_AFTER, Fault.UNKNOWN), then=(2, 5)
    )


@pytest.mark.verify
def test_a_supervisor_may_die_after_every_call_of_a_run_of_one_order() -> None:
    crash_everywhere(_repaired(1, TERMS), a_patient_world, faults=(Fault.CRASH_AFTER,))


def test_commands_that_aws_refuses_stop_the_run_and_a_person_resumes_it() -> None:
    world = a_world()
    orders = archived(world, 4)
    world.faults.on("send_commands", Fault.REFUSED, nth=1)
    start(world, orders)
    world.run(until=lambda: record(world).state is not RunState.RUNNING)
    assert record(world).why == "send_commands: AccessDenied"
    world.run()
    asks(world, RequestAction.RESUME)
    world.run()
    assert states(world, orders) == {"Completed": 4}
    assert record(world).progress.count(OrderResult.COMPLETED) == 4


def test_an_agent_on_hold_stops_the_run_before_it_sends_to_it() -> None:
    world = a_world()
    orders = archived(world, 3)
    world.hold("mail", 60 * MINUTE, "moving")
    start(world, orders)
    world.run()
    found = record(world)
    assert (found.state, found.on_hold, found.progress.sent) == (RunState.STOPPED, True, 0)
    assert found.why == "mail is held by operator: moving, and the orders would wait for it"


@pytest.mark.verify
def test_a_run_that_another_release_wrote_halfway_is_carried_on() -> None:
    """A deployment replaces the instances of the supervisor while a run is under way."""
    world = a_world()
    orders = archived(world, 90)
    start(world, orders, Terms(canary=5, rate=0.5))
    world.run(until=lambda: 10 < record(world).progress.sent < 90)
    world.processes.forget_supervisors()
    world.run()
    assert record(world).state is RunState.FINISHED
    assert states(world, orders) == {"Completed": 90}


def test_an_order_that_moved_on_and_may_still_be_repaired_gets_its_command_again() -> None:
    world = a_world()
    [order] = archived(world, 1)
    world.mail("commands", RUN).is_late(by=timedelta(seconds=5))
    start(world, [order])
    world.run(until=lambda: record(world).progress.sent > 0)
    seen = world.task(order)
    world.processes.store.save(replace(seen, version=seen.version + 1), seen=seen.version)
    world.run()
    assert [row.kind for row in taken(world, order)] == ["refused", "resubmit"]
    assert states(world, [order]) == {"Completed": 1}
    found = record(world)
    assert (found.progress.sent, found.progress.refusals) == (1, 0)
    assert found.progress.count(OrderResult.COMPLETED) == 1


def test_a_command_that_is_carried_out_between_two_reads_is_not_taken_for_a_failure() -> None:
    """The task is read before the command has its effect, and the history after it."""
    world = a_world()
    [order] = archived(world, 1)
    world.mail("commands", RUN).is_late(by=timedelta(hours=1))
    start(world, [order])
    world.run(until=lambda: record(world).progress.sent > 0)
    late = waiting(world, COMMANDS)[0]
    met = meanwhile(world, "history", lambda: deliver(world, late))
    world.run()
    assert met
    found = record(world)
    assert found.progress.count(OrderResult.FAILED) == 0
    assert found.progress.count(OrderResult.COMPLETED) == 1
    assert found.state is RunState.FINISHED


def test_an_order_that_failed_again_while_no_supervisor_ran_counts_as_failed() -> None:
    world = a_world()
    orders = archived(world, 3)
    world.on("mail").refuses("NoAddress", times=2)
    world.faults.on("send_commands", Fault.CRASH_AFTER, nth=1)
    start(world, orders, Terms(canary=2, stop_at=1.0))
    world.run()
    found = record(world)
    assert (found.progress.count(OrderResult.FAILED), found.progress.refusals) == (2, 0)
    assert found.progress.count(OrderResult.COMPLETED) == 1
    [group] = found.progress.failed
    assert (group.orders, group.reason) == (2, "mail: NoAddress")


def test_what_was_stored_and_never_sent_and_failed_by_another_hand_is_not_lost() -> None:
    world = a_world()
    orders = archived(world, 2)
    world.faults.on("send_commands", Fault.CRASH_BEFORE, nth=1)
    start(world, orders, Terms(canary=2, stop_at=1.0))
    world.run(until=lambda: Fault.CRASH_BEFORE in world.faults.count)
    world.on("mail").refuses("NoAddress", times=1)
    world.operator.resubmit(orders[0])
    world.run()
    found = record(world)
    assert found.progress.count(OrderResult.COMPLETED) == 1
    [refused] = found.progress.refused
    assert (refused.reason, refused.samples) == (
        "it failed again after the run began",
        (orders[0],),
    )
    assert (found.progress.on_their_way, found.left) == ((), 0)


def test_an_order_that_cannot_be_read_is_refused_and_holds_up_no_other() -> None:
    world = a_world()
    orders = archived(world, 3)
    problem = UnreadableRecord(orders[1], "State", "is missing")
    world.processes.store.make_unreadable(orders[1], problem)
    start(world, orders)
    world.run()
    found = record(world)
    assert found.state is RunState.FINISHED
    assert found.progress.count(OrderResult.COMPLETED) == 2
    [note] = world.processes.bulk_runs.notes(record(world))
    assert (note.order, note.reason) == (orders[1], str(problem))


def test_a_queue_that_is_throttled_delays_the_run_and_nothing_else() -> None:
    world = a_world()
    orders = archived(world, 30)
    world.faults.on("send_commands", Fault.NOT_DONE, nth=1)
    world.faults.on("send_commands", Fault.UNKNOWN, nth=2)
    start(world, orders)
    world.run()
    assert record(world).state is RunState.FINISHED
    assert states(world, orders) == {"Completed": 30}
    for order in orders:
        assert [row.kind for row in taken(world, order)] == ["resubmit"]


def test_a_run_over_orders_whose_tasks_are_kept_no_longer_than_their_end() -> None:
    shop = a_workflow(a_step("mail", retry=ONCE), on_failure=Archive(), retain_for=timedelta())
    world = World(shop)
    orders = archived(world, 3)
    start(world, orders)
    world.run()
    found = record(world)
    assert found.progress.count(OrderResult.COMPLETED) == 3
    assert found.state is RunState.FINISHED


def test_orders_that_others_have_repaired_and_that_are_gone_are_not_counted_as_completed() -> None:
    shop = a_workflow(a_step("mail", retry=ONCE), on_failure=Archive(), retain_for=timedelta())
    world = World(shop)
    orders = archived(world, 3)
    world.faults.on("send_commands", Fault.CRASH_BEFORE, nth=1)
    start(world, orders)
    world.run(until=lambda: Fault.CRASH_BEFORE in world.faults.count)
    for order in orders:
        world.operator.resubmit(order)
    world.run()
    found = record(world)
    assert found.state is RunState.FINISHED
    assert found.progress.results == 0
    [group] = found.progress.refused
    assert (group.orders, group.reason) == (3, NOT_BY_THIS_RUN)


def test_two_runs_are_carried_side_by_side() -> None:
    world = a_world()
    orders = archived(world, 8)
    start(world, orders[:4])
    event = Resubmit(CommandSource("b-00000002", "eve"))
    other = Run(
        "b-00000002", event, "eve", "AROAOPERATOR:eve", "", "", world.now, 4, Terms(canary=2)
    )
    world.processes.bulk_runs.begin(other, [PlannedOrder(one) for one in orders[4:]])
    world.run()
    assert states(world, orders) == {"Completed": 8}
    assert {row.sender for one in orders for row in world.history(one) if row.by} == {
        STARTER,
        "AROAOPERATOR:eve",
    }


@pytest.mark.verify
def test_orders_under_way_are_all_cancelled_although_each_changes_every_few_seconds() -> None:
    """A command is delivered up to 20 s after its order was read."""
    steps = list[Step]()
    for number in range(30):
        steps.append(a_step(f"step_{number}", *steps[-1:], agent="mail"))
    world = World(a_workflow(*steps), interval=timedelta(seconds=10))
    for step in steps:
        world.on(step.name).takes(timedelta(seconds=3), times=200)
    orders = [world.submit() for _ in range(40)]
    world.run(for_=timedelta(seconds=5))
    assert states(world, orders) == {"Active": 40}
    start(world, orders, Terms(canary=0, rate=4), Cancel(CommandSource(RUN, "amy"), undo=False))
    world.run()
    assert states(world, orders) == {"Cancelled": 40}
    found = record(world)
    assert (found.progress.count(OrderResult.CANCELLED), found.progress.refusals) == (40, 0)


@pytest.mark.parametrize(
    ("event", "result"),
    [
        (Cancel(CommandSource(RUN, "amy"), undo=True), OrderResult.CANCELLED),
        (UndoAsked(CommandSource(RUN, "amy")), OrderResult.UNDONE),
    ],
)
def test_orders_that_are_kept_no_longer_than_their_end_are_counted_as_what_they_became(
    event: OperatorEvent, result: OrderResult
) -> None:
    shop = a_workflow(a_step("mail", retry=ONCE), on_failure=Archive(), retain_for=timedelta())
    world = World(shop)
    orders = archived(world, 3)
    start(world, orders, event=event)
    world.run()
    assert dict(record(world).progress.ended) == {result: 3}


UNDO = UndoAsked(CommandSource(RUN, "amy"))
PARCEL = a_step("parcel", compensation=FENCED)
"""What is undone of a completed order."""


def completed(world: World, count: int) -> list[str]:
    """So many completed orders."""
    orders = [world.submit() for _ in range(count)]
    world.run()
    assert states(world, orders) == {"Completed": count}
    return orders


def test_completed_orders_are_taken_back_in_the_version_in_which_a_person_saw_them() -> None:
    bill = a_step("bill", PARCEL, compensation=FENCED)
    world = World(a_workflow(PARCEL, bill))
    orders = completed(world, 4)
    start(world, orders, Terms(canary=2), UNDO, pinned=True)
    world.operator.undo(orders[3], "bill")
    world.run()
    assert states(world, orders) == {"Undone": 3, "Completed": 1}
    assert [one.step for one in world.services.ledger.standing(orders[3])] == ["parcel"]
    found = record(world)
    assert (found.state, found.progress.count(OrderResult.UNDONE)) == (RunState.FINISHED, 3)
    [refused] = found.progress.refused
    assert (refused.reason, refused.samples) == (CHANGED, (orders[3],))
    world.check_all_ended()


def test_a_run_that_names_no_version_takes_no_completed_order_back() -> None:
    world = World(a_workflow(PARCEL))
    orders = completed(world, 2)
    start(world, orders, event=UNDO)
    world.run()
    assert states(world, orders) == {"Completed": 2}
    [refused] = record(world).progress.refused
    assert "only a command that names the version" in refused.reason


@pytest.mark.parametrize(
    ("shop", "sentence"),
    [
        (
            a_workflow(PARCEL, point_of_no_return=PARCEL),
            "the task is completed, past its point of no return, parcel",
        ),
        (
            a_workflow(a_step("parcel")),
            "the task is completed, and no step that was performed has a compensation",
        ),
    ],
)
def test_a_completed_order_that_cannot_be_taken_back_is_refused_with_its_sentence(
    shop: Workflow, sentence: str
) -> None:
    world = World(shop)
    orders = completed(world, 2)
    start(world, orders, event=UNDO, pinned=True)
    world.run()
    assert states(world, orders) == {"Completed": 2}
    [refused] = record(world).progress.refused
    assert (refused.reason, refused.orders) == (sentence, 2)


def test_undos_that_fail_stop_the_run_and_the_other_orders_stand() -> None:
    world = World(a_workflow(PARCEL))
    orders = completed(world, 10)
    world.on("parcel", "undo").refuses("TooLate", times=10)
    start(world, orders, Terms(canary=3), UNDO, pinned=True)
    world.run(for_=timedelta(minutes=20))
    assert states(world, orders) == {"Archived": 3, "Completed": 7}
    assert record(world).state is RunState.STOPPED


def _taken_back(world: World) -> None:
    orders = completed(world, 2)
    start(world, orders, Terms(canary=1), UNDO, pinned=True)
    world.run()
    assert states(world, orders) == {"Undone": 2}
    assert record(world).progress.count(OrderResult.UNDONE) == 2
    for order in orders:
        assert [row.kind for row in taken(world, order)] == ["undo"]


@pytest.mark.verify
def test_a_supervisor_may_die_after_every_call_and_each_order_is_taken_back_once() -> None:
    crash_everywhere(
        _taken_back,
        lambda faults: World(a_workflow(PARCEL), faults=faults),
        faults=(Fault.CRASH_AFTER,),
    )

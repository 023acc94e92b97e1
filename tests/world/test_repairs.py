"""What a person repairs, and what is claimed, extended or answered late: no effect comes twice."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry
from roundsman.errors import PermanentError, TransientError
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect
from roundsman_testing import Fault, World
from roundsman_testing.world.queues import REQUESTS
from roundsman_testing.world.services import CallEnd
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow, since_morning

SECONDS = timedelta(seconds=5)


class GatewayTimeout(TransientError):
    """The call may have been taken."""


def keys_standing(world: World, order: str) -> list[str]:
    return [effect.key for effect in world.services.ledger.standing(order)]


def archived_by(world: World) -> str:
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    world.run(for_=5 * MINUTE)  # no copy of a request may act any more
    return order


def taken_and_refused(world: World, how: str) -> str:
    """A charge that took place, and of which the record has a failure for good."""
    if how == "the answer timed out":
        world.on("charge").add(CallEnd(error=GatewayTimeout("504")), times=3)
    elif how == "a second try was refused":
        world.on("charge").add(CallEnd(error=TransientError("the connection was reset")))
        world.on("charge").add(CallEnd(done=False, error=PermanentError("Busy", "asked before")))
    else:
        world.mail(REQUESTS).comes_twice(after=SECONDS)
        world.on("charge").refuses("CardDeclined", times=1)
        if how == "another copy was taken, and its answer lost":
            world.on("charge").loses_answer()
    order = archived_by(world)
    assert keys_standing(world, order) == [f"{order}/charge/perform"]
    world.on("charge").is_up()
    return order


WAYS = (
    "the answer timed out",
    "a second try was refused",
    "another copy was taken, and says so",
    "another copy was taken, and its answer lost",
)
RETRY = Retry(max_attempts=3, not_on=("GatewayTimeout",))


@pytest.mark.parametrize("how", WAYS)
def test_a_charge_that_was_taken_and_then_refused_is_not_made_under_a_second_key(how: str) -> None:
    charge = a_step("charge", compensation=FENCED, retry=RETRY)
    world = World(a_workflow(charge, on_failure=Archive()))
    order = taken_and_refused(world, how)
    assert not world.task(order).step("charge").refused
    world.operator.resubmit(order, fresh_key=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert keys_standing(world, order) == [f"{order}/charge/perform/2"]


@pytest.mark.parametrize("how", WAYS[:2])
def test_a_charge_that_was_taken_and_then_refused_is_not_made_at_another_agent(how: str) -> None:
    charge = a_step("charge", agents=("pay", "backup"), agent="", compensation=FENCED, retry=RETRY)
    world = World(a_workflow(charge, on_failure=Archive()))
    order = taken_and_refused(world, how)
    world.hold("pay", 30 * MINUTE)
    world.operator.resubmit(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert keys_standing(world, order) == [f"{order}/charge/perform"]


def test_a_copy_of_a_refused_request_is_not_taken_where_the_step_may_go_to_another_agent() -> None:
    charge = a_step("charge", agents=("pay", "backup"), agent="", compensation=FENCED)
    world = World(a_workflow(charge, on_failure=Archive()))
    world.mail(REQUESTS).comes_twice(after=SECONDS)
    world.on("charge").refuses("CardDeclined", times=1)
    order = archived_by(world)
    assert world.task(order).step("charge").refused
    world.hold("pay", 30 * MINUTE)
    world.operator.resubmit(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert keys_standing(world, order) == [f"{order}/charge/perform/backup"]


def test_what_a_copy_says_of_a_step_that_has_failed_is_kept_after_the_task_has_ended() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), on_failure=Archive()))
    order = taken_and_refused(world, "another copy was taken, and says so")
    assert world.task(order).step("charge").effect is Effect.STANDS
    assert [row.kind for row in world.history(order)] == ["failed", "late success"]


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.CRASH_BEFORE])
def test_an_inspection_that_could_not_send_its_claim_sends_it_when_it_comes_again(
    fault: Fault,
) -> None:
    retry = Retry(max_attempts=2, first_delay=timedelta(seconds=2))
    world = World(a_workflow(a_step("charge", complete_within=10 * MINUTE, retry=retry)))
    world.on("charge").fails(times=3)  # one attempt
    world.faults.on("send_requests", fault, nth=2)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 1
    assert since_morning(world) < 2 * MINUTE, "it is sent when its message comes again"


@pytest.mark.parametrize("orders_before", [0, 3])
@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.CRASH_BEFORE])
def test_a_process_that_dies_before_it_sends_costs_a_short_step_no_attempt(
    fault: Fault, orders_before: int
) -> None:
    """Its message comes again after a minute, when the step of half a minute is long overdue."""
    charge = a_step("charge", complete_within=MINUTE / 2, retry=ONCE, compensation=FENCED)
    world = World(a_workflow(charge))
    for _ in range(orders_before):
        world.submit()
    world.run(for_=SECONDS)
    world.faults.on("send_requests", fault, nth=1)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 0


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.SWALLOWED])
def test_a_step_that_an_inspection_makes_ready_is_watched_though_its_start_is_lost(
    fault: Fault,
) -> None:
    within = timedelta(seconds=20)  # less than from one pass to the next: no other inspects it
    pick = a_step("pick", for_each="input.lines", tolerate=0.5, retry=ONCE, complete_within=within)
    world = World(a_workflow(pick, a_step("pack", pick)))
    world.on("pick[1]").hangs()
    world.faults.on("send_start", fault, nth=2)
    order = world.submit({"lines": [{"sku": "a"}, {"sku": "b"}]})
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 5 * MINUTE


def test_an_undo_does_not_wait_for_a_callback_that_has_come() -> None:
    approve = a_step("approve", compensation=Compensation())
    pay = a_step("pay", approve, compensation=FENCED)
    world = World(a_workflow(approve, pay, complete_within=timedelta(days=40)))
    world.on("approve").waits(timedelta(days=30), answers_in=5 * MINUTE)
    world.on("pay").refuses("CardDeclined")
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert since_morning(world) < timedelta(hours=1)


def test_more_time_for_a_step_helps_a_call_that_takes_longer_than_it_was_given() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED, retry=ONCE)))
    world.on("charge").takes(timedelta(seconds=70))
    order = world.submit()
    world.run(for_=SECONDS)
    world.operator.extend(order, 10 * MINUTE, "charge")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 0


def test_an_undone_order_names_what_an_earlier_round_has_left_standing() -> None:
    reserve = a_step("reserve", compensation=FENCED)
    mail = a_step("mail", reserve)
    world = World(a_workflow(reserve, mail, a_step("charge", mail, compensation=FENCED)))
    world.on("charge").refuses("CardDeclined")
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    world.on("reserve").refuses("OutOfStock")
    world.operator.resubmit(order, again=True)
    world.run()
    ended = world.task(order)
    assert ended.state is TaskState.UNDONE
    assert ended.step("mail").process_state is ProcessState.PENDING
    assert ended.ending is not None
    assert ended.ending.why.endswith("without compensation: mail")

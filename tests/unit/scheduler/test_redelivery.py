"""Whatever message or command claims a step, its redelivery sends again exactly what it claimed."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry
from roundsman.errors import TryAgain
from roundsman.model.events import CommandSource, OperatorEvent, Outcome, Resolve, Resubmit, RunNow
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState
from roundsman.wire.commands import Command, command_of
from roundsman_testing.faults import Crash, Fault, Faults
from tests.support.machine_world import plan, step
from tests.support.shell_world import ORDER_ID, Shells

TEN_MINUTES = timedelta(minutes=10)
ASKED = CommandSource("c-1", "ann")


def submitted(*, max_attempts: int = 3) -> Shells:
    retry = Retry(max_attempts=max_attempts)
    charge = step("charge", complete_within=TEN_MINUTES, retry=retry, on_failure=Archive())
    shells = Shells(plan(charge))
    shells.submit()
    shells.start()
    return shells


def in_retry() -> Shells:
    shells = submitted()
    shells.reply("charge", Outcome.TRANSIENT)
    not_before = shells.task().step("charge").not_before
    assert not_before is not None
    shells.now = not_before
    return shells


def waiting() -> Shells:
    shells = submitted()
    shells.reply("charge", Outcome.TRANSIENT)
    return shells


def archived() -> Shells:
    shells = submitted()
    shells.reply("charge", Outcome.PERMANENT)
    return shells


CASES: list[tuple[Callable[[], Shells], OperatorEvent | None]] = [
    (in_retry, None),
    (archived, Resubmit(ASKED)),
    (archived, Resolve(ASKED, "charge", did=False)),
    (waiting, RunNow(ASKED)),
]


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.CRASH_BEFORE])
@pytest.mark.parametrize(
    ("begin", "event"), CASES, ids=["an inspection", "resubmit", "resolve", "run"]
)
def test_what_claims_a_step_and_could_not_send_sends_it_when_it_comes_again(
    begin: Callable[[], Shells], event: OperatorEvent | None, fault: Fault
) -> None:
    shells = begin()
    command = Command("inspect", ORDER_ID) if event is None else command_of(ORDER_ID, event)
    shells.outbox.sent.clear()
    faults = Faults().on("send_requests", fault)
    with pytest.raises((Crash, TryAgain)):
        shells.scheduler(faults).command(command, "m-claims")
    claimed = shells.task().step("charge").locked_by
    assert shells.requests() == []
    shells.wait(60).scheduler(instance="another").command(command, "m-claims")
    assert shells.requests() == [("charge", claimed)]
    assert shells.task().step("charge").process_state is ProcessState.PROCESSING


def test_a_redelivery_sends_nothing_that_another_message_has_claimed() -> None:
    shells = in_retry()
    inspect = Command("inspect", ORDER_ID)
    with pytest.raises(Crash):
        shells.scheduler(Faults().on("send_requests", Fault.CRASH_BEFORE)).command(inspect, "m-1")
    shells.scheduler().command(inspect, "m-2")
    assert shells.requested() == ["charge"], "that of the first attempt"


def test_a_request_that_was_not_sent_in_its_time_is_another_claim_with_another_lock() -> None:
    """The same message may claim the same attempt twice: its lock must distinguish the two."""
    shells = submitted()
    first = shells.task().step("charge").locked_by
    shells.reply("charge", Outcome.HELD)
    not_before = shells.task().step("charge").not_before
    assert not_before is not None
    shells.now = not_before + SECOND
    shells.start()
    again = shells.task().step("charge")
    assert again.failure_count == 0
    assert again.locked_by is not None
    assert again.locked_by != first

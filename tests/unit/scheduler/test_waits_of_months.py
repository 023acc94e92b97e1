"""Waits longer than a message can be delayed, on a clock that is set: nothing forgets them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry, Wait
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Outcome
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman.ports import LONGEST_DELAY
from roundsman.supervisor.supervisor import Supervisor
from roundsman.wire.commands import Command
from roundsman_testing.recording import SentCommand
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import ORDER_ID, Shells

HOUR = 60 * MINUTE
DAY = 24 * HOUR
first = step("first")


@dataclass
class Clockwork:
    """A supervisor once a minute, and a queue that delivers each command when its delay is over.

    Of a long wait only every so many minutes are lived through: what happens in the others is the
    same. `longest` is the longest delay that any message was sent with.
    """

    shells: Shells
    longest: int = 0
    _waiting: list[tuple[int, SentCommand]] = field(default_factory=list)
    _taken: int = 0
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self.supervisor = self.shells.supervisor()
        self._take()

    def until(self, instant: int) -> None:
        for at in ticks(self.shells.now, instant):
            self._deliver(at)
            self.shells.now = at
            self.supervisor.make_pass(stop_at=at + MINUTE)
            self._take()
        self._deliver(instant)
        self.shells.now = instant

    def _take(self) -> None:
        """What was sent since is in the queue now."""
        for sent in self.shells.outbox.sent[self._taken :]:
            if isinstance(sent, SentCommand):
                self.longest = max(self.longest, sent.delay)
                self._waiting.append((self.shells.now + sent.delay, sent))
        self._taken = len(self.shells.outbox.sent)

    def _deliver(self, until: int) -> None:
        self._waiting.sort(key=lambda each: each[0])
        while self._waiting and self._waiting[0][0] <= until:
            at, sent = self._waiting.pop(0)
            self.shells.now = max(self.shells.now, at)
            command = Command(kind=sent.kind, task_id=sent.task_id)
            self.shells.scheduler().command(command, f"m-{self._taken}-{at}")
            self._take()
            self._waiting.sort(key=lambda each: each[0])


def ticks(now: int, end: int) -> Iterator[int]:
    """Every minute near either end, every hour on the way."""
    at = now + MINUTE
    while at < end:
        yield at
        near = at < now + HOUR or at > end - 2 * HOUR
        at += MINUTE if near else HOUR


@pytest.mark.parametrize(
    "wait",
    [
        30 * SECOND,
        14 * MINUTE,
        LONGEST_DELAY,
        LONGEST_DELAY + 1,
        3 * HOUR,
        pytest.param(90 * DAY, marks=pytest.mark.verify),
        pytest.param(365 * DAY, marks=pytest.mark.verify),
    ],
)
def test_a_scheduled_task_starts_within_two_seconds_of_its_time_however_far_it_is(
    wait: int,
) -> None:
    shells = Shells(plan(first), options=ProcessingOptions(start_at=T0 + wait))
    shells.submit()
    clockwork = Clockwork(shells)
    clockwork.until(T0 + wait - 1)
    assert shells.requested() == []
    assert shells.task().state is TaskState.SCHEDULED
    clockwork.until(T0 + wait + 2 * SECOND)
    assert shells.requested() == ["first"]
    assert shells.task().complete_by == T0 + wait + HOUR, "its time counts from its start"
    assert clockwork.longest <= LONGEST_DELAY
    assert not shells.unwatched


@pytest.mark.parametrize("wait", [20 * MINUTE, 3 * HOUR, 20 * DAY])
def test_a_retry_far_ahead_is_made_within_two_seconds_of_its_time(wait: int) -> None:
    patient = plan(first, complete_within=timedelta(days=30))
    shells = Shells(patient)
    shells.submit()
    shells.start()
    reply = replace(shells.reply_to("first", Outcome.TRANSIENT), retry_after=wait)
    shells.scheduler().reply(reply, "m-not-now")
    not_before = shells.task().step("first").not_before
    assert shells.task().state is TaskState.RETRY
    assert not_before == T0 + wait
    clockwork = Clockwork(shells)
    clockwork.until(not_before - 1)
    assert len(shells.requested()) == 1
    clockwork.until(not_before + 2 * SECOND)
    assert len(shells.requested()) == 2
    assert clockwork.longest <= LONGEST_DELAY
    assert not shells.unwatched


def test_an_extended_wait_of_days_is_followed_by_one_more_attempt_and_then_by_its_end() -> None:
    waits = step(
        "first",
        retry=Retry(max_attempts=1),
        on_failure=Wait(timedelta(days=2), times=1, then=Archive()),
    )
    shells = Shells(plan(waits, complete_within=timedelta(days=30)))
    shells.submit()
    shells.start()
    clockwork = Clockwork(shells)
    clockwork.until(T0 + HOUR)  # the agent never answers
    again_at = shells.task().step("first").not_before
    assert again_at is not None
    assert 2 * DAY < again_at - T0 < 2 * DAY + 2 * MINUTE
    clockwork.until(again_at + 2 * SECOND)
    assert len(shells.requested()) == 2
    clockwork.until(again_at + HOUR)
    assert shells.task().state is TaskState.ARCHIVED
    assert len(shells.requested()) == 2


@pytest.mark.verify
def test_a_task_that_waits_for_months_costs_its_passes_nothing() -> None:
    shells = Shells(plan(first), options=ProcessingOptions(start_at=T0 + 90 * DAY))
    shells.submit()
    clockwork = Clockwork(shells)
    before = shells.task()
    clockwork.until(T0 + 89 * DAY)
    assert shells.task() == before
    assert shells.commands() == []
    assert shells.task().task_id == ORDER_ID

"""Visits to bulk runs on a clock that a test moves: the rate, the cost and the end of a visit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from roundsman.definition.workflow import Archive
from roundsman.errors import CallRefused, NoTransition, TryAgain, UnreadableRecord
from roundsman.model.bulk_run import (
    BulkRecord,
    ListedRun,
    OrderNote,
    OrderResult,
    PlannedOrder,
    RequestAction,
    Run,
    RunProgress,
    RunRequest,
    RunState,
    Terms,
    requested,
)
from roundsman.model.events import CommandSource, HistoryRow, Resubmit
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman.supervisor.bulk_runs import (
    CARRIED_FOR,
    LONGEST_NOTE,
    MOST_NOTES,
    SENDS_AHEAD,
    SENT_AGAIN_AFTER,
    BulkPorts,
    BulkReport,
    BulkRuns,
)
from roundsman.supervisor.supervisor import VISIT_INTERVAL, VisitTimes
from roundsman.wire.commands import Command
from roundsman_testing import World
from roundsman_testing.memory import MemoryBulkRuns, MemoryHolds, MemoryPlans, MemoryStore
from roundsman_testing.world.outbox import WorldOutbox
from tests.support.steps import changed_step
from tests.world.shop import ONCE, a_step, a_workflow

NOW = 1_800_000_000_000
RUN, STARTER = "b-00000001", "AROAOPERATOR:amy"


@cache
def failed() -> tuple[Task, MemoryPlans]:
    """A task that failed, and the plans."""
    world = World(a_workflow(a_step("mail", retry=ONCE), on_failure=Archive()))
    world.on("mail").refuses("NoAddress")
    order = world.submit()
    world.run()
    return world.task(order), world.processes.plans


class Shop(MemoryStore):
    """Tasks that failed, and complete two seconds after the scheduler receives their command."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self._clock = clock
        self.received: dict[str, int] = {}
        self.loads = 0
        self.fail_again: Callable[[int], bool] = lambda _: False

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        self.loads += 1
        task = replace(failed()[0], task_id=task_id, ended_at=NOW - MINUTE)
        at = self.received.get(task_id)
        if at is None or at > self._clock():
            return task
        task = replace(task, version=task.version + 1, command_ids=(RUN,))
        if at + 2 * SECOND > self._clock():
            return replace(task, state=TaskState.ACTIVE)
        if self.fail_again(at):
            return replace(task, ended_at=at + 2 * SECOND)
        return replace(task, state=TaskState.COMPLETED)


class Desk:
    """A supervisor that visits the runs, and a person who starts one."""

    def __init__(self) -> None:
        self.now = NOW
        self.shop = Shop(lambda: self.now)
        self.runs = MemoryBulkRuns(lambda: self.now)
        self.outbox = WorldOutbox(lambda *_: None, [])
        self.outbox.send_commands = self._send  # type: ignore[method-assign]
        self.sent: list[tuple[int, str]] = []
        self.troubles: list[tuple[str, Exception]] = []
        self.carrier = self.supervisor("u1")

    def supervisor(self, instance: str) -> BulkRuns:
        ports = BulkPorts(
            runs=self.runs,
            tasks=self.shop,
            orders=self.shop,
            plans=failed()[1],
            holds=MemoryHolds(lambda: self.now),
            outbox=self.outbox,
            clock=lambda: self.now,
        )
        return BulkRuns(
            ports, instance=instance, on_trouble=lambda *each: self.troubles.append(each)
        )

    def _send(self, commands: Sequence[tuple[Command, int]]) -> None:
        for command, delay in commands:
            at = self.now + -(-delay // SECOND) * SECOND
            self.shop.received.setdefault(command.task_id, at)
            self.sent.append((at, command.task_id))

    def start(self, count: int, terms: Terms, run_id: str = RUN) -> None:
        event = Resubmit(CommandSource(run_id, "amy"))
        run = Run(run_id, event, "amy", STARTER, "", "", self.now, count, terms)
        self.runs.begin(run, [PlannedOrder(f"ord-{place}") for place in range(count)])

    def ask(self, action: RequestAction, reason: str) -> None:
        request = RunRequest(action, "eve", "AROA:eve", reason, self.now)
        assert self.runs.ask(RUN, request, seen=self.record.asked_at)

    def visit(self, who: BulkRuns | None = None, *, last: bool = False) -> BulkReport:
        times = VisitTimes(self.now + MINUTE, self.now + VISIT_INTERVAL, last=last)
        return (who or self.carrier).visit(times)

    def carry(self, visits: int = 1_000) -> None:
        """Visit every ten seconds, until no run is open."""
        for _ in range(visits):
            if not self.visit().open:
                return
            self.now += VISIT_INTERVAL

    @property
    def record(self) -> BulkRecord:
        found = self.runs.load(RUN, STARTER)
        assert found is not None
        return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("rate", [0.5, 2.5, 10.0, 25.0])
def test_the_rate_is_exact_within_a_tenth(rate: float) -> None:
    """Counted from the delays of the messages: over the whole run, and over any ten seconds."""
    desk, count = Desk(), round(rate * 200)
    desk.start(count, Terms(canary=0, rate=rate, at_once=1_000))
    desk.carry()
    at = sorted(one for one, _ in desk.sent)
    assert len(at) == count
    assert at[-1] - at[0] == pytest.approx(count / rate * SECOND, rel=0.1)
    for begins in range(at[0], at[-1] - 20 * SECOND, 5 * SECOND):
        within = sum(begins <= one < begins + 20 * SECOND for one in at)
        assert within == pytest.approx(20 * rate, rel=0.1), f"from {begins - at[0]} ms on"
    assert desk.record.state is RunState.FINISHED
    assert desk.record.progress.count(OrderResult.COMPLETED) == count


def test_the_rate_stays_the_same_if_a_visit_is_late() -> None:
    desk = Desk()
    desk.start(1_000, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit()
    desk.now += VISIT_INTERVAL + 8 * SECOND
    desk.carry()
    at = sorted(one for one, _ in desk.sent)
    assert at[-1] - at[0] == pytest.approx(100 * SECOND, rel=0.1)
    assert max(later - one for one, later in pairwise(at)) <= SECOND


def test_after_a_pause_nothing_is_made_up_for() -> None:
    desk = Desk()
    desk.start(600, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit()
    desk.now += 10 * MINUTE
    before = len(desk.sent)
    desk.visit()
    later = [at for at, _ in desk.sent[before:]]
    assert len(later) == 10 * SENDS_AHEAD // SECOND + 1
    assert min(later) >= desk.now
    assert max(later) <= desk.now + SENDS_AHEAD + SECOND


def test_no_order_is_sent_further_ahead_than_a_stop_can_wait() -> None:
    desk = Desk()
    desk.start(5_000, Terms(canary=0, rate=25, at_once=1_000))
    desk.visit()
    assert max(at for at, _ in desk.sent) <= desk.now + SENDS_AHEAD + SECOND


def test_what_fails_again_midway_stops_the_run_within_a_visit_and_what_was_sent() -> None:
    desk = Desk()
    breaks = NOW + 60 * SECOND
    desk.shop.fail_again = lambda at: at >= breaks
    desk.start(3_000, Terms(rate=10, at_once=1_000))
    desk.carry()
    record = desk.record
    assert record.state is RunState.STOPPED
    assert "of the last 100 failed again, more than 20%" in record.why
    seen = breaks + 2 * SECOND + VISIT_INTERVAL
    assert max(at for at, _ in desk.sent) <= seen + SENDS_AHEAD + VISIT_INTERVAL
    assert record.progress.results == record.progress.sent == len(desk.sent)
    notes = desk.runs.notes(desk.record)
    assert len(notes) == record.progress.count(OrderResult.FAILED)


def test_the_canary_is_waited_for() -> None:
    desk = Desk()
    desk.start(100, Terms(canary=5))
    desk.visit()
    assert len(desk.sent) == 5
    desk.now += VISIT_INTERVAL
    desk.visit()
    assert len(desk.sent) == 100
    assert desk.record.progress.count(OrderResult.COMPLETED) == 5


def test_no_more_orders_are_in_flight_than_the_terms_allow() -> None:
    desk = Desk()
    desk.start(500, Terms(canary=0, rate=10, at_once=30))
    for _ in range(5):
        desk.visit()
        assert len(desk.record.progress.on_their_way) <= 30
        desk.now += VISIT_INTERVAL


def test_a_visit_reads_each_order_that_it_sends_or_checks_once() -> None:
    desk = Desk()
    desk.start(250, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit()
    assert desk.shop.loads == len(desk.sent) == 201
    desk.now += VISIT_INTERVAL
    report = desk.visit()
    assert desk.shop.loads == 201 + report.checked + report.sent


def test_a_visit_ends_when_its_time_is_over() -> None:
    desk = Desk()
    desk.start(1_000, Terms(canary=0, rate=25, at_once=1_000))
    inner = desk.shop.load

    def slow(task_id: str, now: int, *, latest: bool = True) -> Task | None:
        desk.now += 50
        return inner(task_id, now, latest=latest)

    desk.shop.load = slow  # type: ignore[method-assign]
    began = desk.now
    report = desk.carrier.visit(VisitTimes(began + 8 * SECOND, began + VISIT_INTERVAL, last=True))
    assert report.open == 1
    assert desk.now <= began + 8 * SECOND + 100 * 50  # the page that it had begun
    assert len(desk.sent) == 200


def test_a_run_is_carried_by_one_supervisor_until_that_has_been_silent() -> None:
    desk = Desk()
    other = desk.supervisor("u2")
    desk.start(1_000, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit()
    sent = len(desk.sent)
    desk.now += VISIT_INTERVAL
    assert desk.visit(other).open == 1
    assert len(desk.sent) == sent
    desk.now += CARRIED_FOR
    desk.visit(other)
    assert len(desk.sent) > sent


def test_the_last_visit_of_an_invocation_leaves_the_run_to_any_other() -> None:
    desk = Desk()
    desk.start(1_000, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit(last=True)
    sent = len(desk.sent)
    desk.now += VISIT_INTERVAL
    desk.visit(desk.supervisor("u2"))
    assert len(desk.sent) > sent


def test_a_paused_run_sends_nothing_and_is_visited_no_more_when_its_orders_have_ended() -> None:
    desk = Desk()
    desk.start(1_000, Terms(canary=0, rate=10, at_once=1_000))
    desk.visit()
    sent = len(desk.sent)
    desk.ask(RequestAction.PAUSE, "slow")
    desk.carry()
    assert len(desk.sent) == sent
    paused = desk.record
    assert paused.state is RunState.PAUSED
    assert paused.progress.results == sent
    assert desk.runs.open_runs() == []
    desk.ask(RequestAction.RESUME, "")
    desk.carry()
    assert desk.record.state is RunState.FINISHED
    assert [one.split(" at ")[0] for one in desk.record.requests] == ["paused", "resumed"]


def test_a_run_without_a_plan_is_closed() -> None:
    desk = Desk()
    desk.start(1, Terms())
    desk.runs.load = lambda *_: None  # type: ignore[method-assign]
    assert desk.visit().open == 0
    assert desk.runs.open_runs() == []


def test_a_run_that_cannot_be_read_does_not_delay_the_others() -> None:
    desk = Desk()
    desk.start(3, Terms(canary=0), "b-00000000")
    desk.start(3, Terms(canary=0))
    inner, problem = desk.runs.load, UnreadableRecord("bulk#b-00000000", "Run", "is missing")

    def broken(run_id: str, starter: str) -> BulkRecord | None:
        if run_id == "b-00000000":
            raise problem
        return inner(run_id, starter)

    desk.runs.load = broken  # type: ignore[method-assign]
    report = desk.visit()
    assert report.open == 2
    assert desk.troubles == [("b-00000000", problem)]
    assert len(desk.sent) == 3


def test_a_part_of_a_plan_that_cannot_be_read_stops_the_run_and_no_result_is_lost() -> None:
    desk = Desk()
    desk.start(30, Terms(canary=0, rate=1.0, at_once=10))
    inner, problem = desk.runs.orders, UnreadableRecord(f"bulk-by#{RUN}#0", "Orders", "is missing")

    def broken(run: Run, first: int, most: int) -> list[PlannedOrder]:
        if first >= 10:
            raise problem
        return inner(run, first, min(most, 10 - first))

    desk.runs.orders = broken  # type: ignore[method-assign]
    desk.carry()
    assert (desk.record.state, desk.record.why) == (RunState.STOPPED, str(problem))
    assert desk.record.progress.count(OrderResult.COMPLETED) == 10
    assert len(desk.sent) == 10
    assert desk.troubles == []
    assert desk.runs.open_runs() == []


@pytest.mark.parametrize(("problem", "is_open"), [(TryAgain("no"), 1), (CallRefused("no", "x"), 0)])
def test_a_list_of_runs_that_cannot_be_read_harms_nothing(problem: Exception, is_open: int) -> None:
    desk = Desk()

    def fails() -> list[ListedRun]:
        raise problem

    desk.runs.open_runs = fails  # type: ignore[method-assign]
    report = desk.visit()
    assert report.open == is_open
    assert (report.refused is None) == isinstance(problem, TryAgain)


def test_an_order_that_was_found_unfit_when_the_run_was_planned_is_refused_with_that() -> None:
    desk = Desk()
    event = Resubmit(CommandSource(RUN, "amy"))
    run = Run(RUN, event, "amy", STARTER, "", "", desk.now, 3, Terms(), pins_versions=True)
    version = failed()[0].version
    planned = [
        PlannedOrder("ord-1", version, refused="the corrected input is not valid: no"),
        PlannedOrder("ord-2", version - 1),
        PlannedOrder("ord-3", version),
    ]
    desk.runs.begin(run, planned)
    desk.carry()
    assert desk.runs.notes(desk.record) == [
        OrderNote("ord-1", failed=False, reason="the corrected input is not valid: no"),
        OrderNote("ord-2", failed=False, reason="its task has changed since the run was planned"),
    ]
    assert [order for _, order in desk.sent] == ["ord-3"]


def test_a_command_is_not_sent_again_by_a_supervisor_that_was_overtaken() -> None:
    desk = Desk()
    desk.start(1, Terms(canary=0))
    desk.visit()
    desk.shop.received.clear()  # the queue has lost the command
    desk.now += SENT_AGAIN_AFTER + MINUTE
    load = desk.shop.load

    def overtaken(task_id: str, now: int, *, latest: bool = True) -> Task | None:
        desk.shop.load = load  # type: ignore[method-assign]
        other = replace(desk.record, carrier="u2", carried_until=now + CARRIED_FOR)
        assert desk.runs.save(other, [])
        return load(task_id, now, latest=latest)

    desk.shop.load = overtaken  # type: ignore[method-assign]
    desk.visit()
    assert len(desk.sent) == 1, "the other one sends it again"
    desk.visit(desk.supervisor("u2"))
    assert len(desk.sent) == 2


def test_a_stopped_run_does_not_send_what_it_could_not_send_before() -> None:
    desk = Desk()
    works = desk.outbox.send_commands

    def throttled(commands: Sequence[tuple[Command, int]]) -> None:
        raise TryAgain(f"throttled: {len(commands)} commands")

    desk.outbox.send_commands = throttled  # type: ignore[method-assign]
    desk.start(3, Terms(canary=0, patience=5 * MINUTE))
    desk.visit()
    assert len(desk.record.progress.on_their_way) == 3
    desk.outbox.send_commands = works  # type: ignore[method-assign]
    desk.ask(RequestAction.STOP, "now")
    desk.carry()
    assert desk.sent == []
    assert desk.record.state is RunState.STOPPED
    assert desk.runs.open_runs() == [], "after the patience"
    desk.ask(RequestAction.RESUME, "")
    desk.carry()
    assert len(desk.sent) == 3


def test_the_history_shows_a_command_that_the_task_no_longer_remembers() -> None:
    """A task keeps the ids of its last commands only."""
    desk = Desk()
    desk.start(1, Terms(canary=0))
    desk.visit()
    inner = desk.shop.load

    def forgetful(task_id: str, now: int, *, latest: bool = True) -> Task | None:
        task = inner(task_id, now, latest=latest)
        return None if task is None else replace(task, command_ids=())

    desk.shop.load = forgetful  # type: ignore[method-assign]
    desk.shop.add_history("ord-0", HistoryRow(1, NOW, "resubmit", None, None, "", "amy", RUN))
    desk.carry()
    assert desk.record.progress.count(OrderResult.COMPLETED) == 1
    assert desk.record.progress.refusals == 0
    assert len(desk.sent) == 1


@pytest.mark.parametrize("later", [0, -1])
def test_a_request_is_applied_once(later: int) -> None:
    event = Resubmit(CommandSource(RUN, "amy"))
    run = Run(RUN, event, "amy", STARTER, "", "", NOW, 1, Terms())
    pause = RunRequest(RequestAction.PAUSE, "eve", "AROA:eve", "slow", NOW)
    paused = requested(BulkRecord(run), pause, NOW)
    assert (paused.state, paused.asked_at) == (RunState.PAUSED, NOW)
    again = RunRequest(RequestAction.RESUME, "eve", "AROA:eve", "", NOW + later)
    assert requested(paused, again, NOW) is paused
    assert requested(paused, replace(again, at=NOW + 1), NOW).state is RunState.RUNNING


@pytest.mark.parametrize(
    ("state", "action", "after"),
    [
        (RunState.RUNNING, RequestAction.PAUSE, RunState.PAUSED),
        (RunState.RUNNING, RequestAction.STOP, RunState.STOPPED),
        (RunState.RUNNING, RequestAction.RESUME, RunState.RUNNING),
        (RunState.PAUSED, RequestAction.PAUSE, RunState.PAUSED),
        (RunState.PAUSED, RequestAction.STOP, RunState.STOPPED),
        (RunState.PAUSED, RequestAction.RESUME, RunState.RUNNING),
        (RunState.STOPPED, RequestAction.PAUSE, RunState.STOPPED),
        (RunState.STOPPED, RequestAction.STOP, RunState.STOPPED),
        (RunState.STOPPED, RequestAction.RESUME, RunState.RUNNING),
        (RunState.FINISHED, RequestAction.PAUSE, RunState.FINISHED),
        (RunState.FINISHED, RequestAction.STOP, RunState.FINISHED),
        (RunState.FINISHED, RequestAction.RESUME, RunState.FINISHED),
    ],
)
def test_each_request_in_each_state(
    state: RunState, action: RequestAction, after: RunState
) -> None:
    event = Resubmit(CommandSource(RUN, "amy"))
    run = Run(RUN, event, "amy", STARTER, "", "", NOW, 9, Terms())
    progress = RunProgress(recent="-+", next_send_at=NOW)
    record = BulkRecord(run, progress, state, why="before", on_hold=True)
    request = RunRequest(action, "eve", "AROA:eve", "routine", NOW, anyway=True)
    found = requested(record, request, NOW + 5)
    assert (found.state, found.asked_at) == (after, NOW)
    assert len(found.requests) == (after is not state)
    if after is not state and after is RunState.RUNNING:
        assert (found.why, found.on_hold, found.anyway) == ("", False, True)
        assert found.progress.recent == ("-+" if state is RunState.PAUSED else "")
        assert found.progress.news_at == NOW + 5
    elif after is not state:
        assert found.why == "by eve (AROA:eve): routine"


def test_an_order_on_which_the_engine_fails_is_refused_and_holds_up_no_other() -> None:
    """A step is under way in a task that is Archived: the table of moves has no such pair."""
    desk = Desk()
    load = desk.shop.load

    def broken(task_id: str, now: int, *, latest: bool = True) -> Task | None:
        task = load(task_id, now, latest=latest)
        if task_id != "ord-3" or task is None:
            return task
        ((name, record),) = task.steps.items()
        under_way = changed_step(record, process_state=ProcessState.PROCESSING, locked_by="x.1.2.3")
        return replace(task, steps={name: under_way})

    desk.shop.load = broken  # type: ignore[method-assign]
    desk.start(20, Terms(canary=0))
    desk.visit()
    (refused,) = desk.record.progress.refused
    assert (refused.reason, refused.samples) == (
        "its record cannot be handled: NoTransition",
        ("ord-3",),
    )
    assert desk.record.progress.sent == 19
    assert [(run, type(why)) for run, why in desk.troubles] == [(RUN, NoTransition)]


def test_what_many_orders_failed_with_is_stored_in_several_items_of_a_limited_size() -> None:
    desk = Desk()
    desk.shop.fail_again = lambda _: True
    stored = list[int]()
    save = desk.runs.save

    def counted(record: BulkRecord, notes: Sequence[OrderNote] = ()) -> BulkRecord | None:
        stored.append(sum(len(note.reason.encode()) for note in notes))
        assert len(notes) <= 2 * MOST_NOTES
        return save(record, notes)

    desk.runs.save = counted  # type: ignore[method-assign]
    desk.start(450, Terms(canary=0, rate=25, at_once=1000, stop_at=1.0))
    while desk.record.progress.sent < 450:
        desk.visit()
        desk.now += VISIT_INTERVAL
    desk.now += MINUTE
    desk.visit()
    assert desk.record.progress.count(OrderResult.FAILED) == 450
    assert len([size for size in stored if size]) >= 4
    assert max(stored) <= 2 * MOST_NOTES * LONGEST_NOTE

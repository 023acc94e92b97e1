"""Waking what a hold has parked: who, when, how many, and when it is enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain
from roundsman.model import holds as holds_module
from roundsman.model.holds import (
    BREAKER,
    ENDED,
    EVERY_WORKFLOW,
    OPERATOR,
    Hold,
    unreadable_hold,
)
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Leases
from roundsman.model.priority import Priority
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.task import Task
from roundsman.model.wakes import KNOWN_AFTER, Wake
from roundsman.ports import ParkedEntry
from roundsman.supervisor.parked import A_SECOND, FIRST, MOST_LOADED, ParkedOrders, wake_first
from roundsman.supervisor.supervisor import VisitTimes
from roundsman.supervisor.wakes import (
    LAST_ROUND,
    ROUND_EVERY,
    SENT_AHEAD,
    TRIED_EVERY,
    WATCHED_FOR,
    WakePorts,
    WakeReport,
    Wakes,
)
from roundsman_testing.memory import MemoryHolds, MemoryLeases, MemoryStore, MemoryWakes
from roundsman_testing.recording import RecordingOutbox, SentCommand
from tests.support.machine_world import plan, step

PLAN = plan(step("a"))
NOW = 1_800_000_000_000
SHARD = 1
LONG_AGO = NOW - 600 * MINUTE
VISITED = 10 * SECOND
FIRST_VISIT = (VISITED + SENT_AHEAD - KNOWN_AFTER) * A_SECOND // SECOND
"""How many orders the first visit after the end of a hold wakes at most."""


class Index(MemoryStore):
    """The index of what is parked, as a list for each target and priority."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], list[ParkedEntry]] = {}
        self.asked: list[str] = []

    def parked(
        self, target: str, priority: str, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        self.asked.append(target)
        found = self.entries.get((target, priority), [])
        return iter([each for each in found if each.since > after and each.shard == shard])


@dataclass
class Night:
    """A supervisor that wakes, a clock, and what it has sent and looked at."""

    now: int = NOW
    index: Index = field(default_factory=Index)
    outbox: RecordingOutbox = field(default_factory=RecordingOutbox)
    looked: list[str] = field(default_factory=list)
    look_takes: int = 0
    shards: int = 2
    leases: MemoryLeases = field(default_factory=MemoryLeases)

    def __post_init__(self) -> None:
        self.holds, self.wakes = MemoryHolds(lambda: self.now), MemoryWakes()
        self.supervisor = self.another()

    def another(self) -> Wakes:
        ports = WakePorts(
            holds=self.holds,
            wakes=self.wakes,
            tasks=self.index,
            leases=self.leases,
            outbox=self.outbox,
            clock=lambda: self.now,
        )
        return Wakes(ports, shards=self.shards, look=self._look)

    def _look(self, task_id: str, shard: int) -> None:
        assert shard == SHARD
        self.looked.append(task_id)
        self.now += self.look_takes

    def park(
        self, *names: str, target: str = "payment", priority: str = Priority.NORMAL, since: int = 0
    ) -> None:
        lane = self.index.entries.setdefault((target, priority), [])
        lane += [ParkedEntry(name, LONG_AGO + since + at, SHARD) for at, name in enumerate(names)]

    def hold(self, until: int, kind: str = OPERATOR, *, workflow: str = "", share: int = 0) -> None:
        agent = "" if workflow else "payment"
        hold = Hold(agent, kind, LONG_AGO, until, "", "amy", workflow=workflow, released=share)
        self.holds.hold(hold)

    def visit(self, after: int = 0, next_in: int = VISITED) -> WakeReport:
        self.now += after
        self.outbox.sent.clear()
        self.looked.clear()
        return self.supervisor.visit(VisitTimes(self.now + MINUTE, self.now + next_in, last=False))

    def sent(self) -> dict[str, int]:
        """The delay in ms of each Inspect that the last visit has sent."""
        return {one.task_id: one.delay for one in self.outbox.sent if isinstance(one, SentCommand)}

    def wake(self, target: str = "payment") -> Wake:
        return self.wakes.read()[target]


def released(*names: str) -> Night:
    night = Night()
    night.hold(ENDED)
    night.park(*names)
    return night


def names(many: int) -> list[str]:
    return [f"ord-{number}" for number in range(many)]


def test_without_a_hold_that_has_ended_nothing_is_read_and_nothing_is_written() -> None:
    night = Night()
    night.park("ord-1")
    assert night.visit() == WakeReport()
    night.hold(NOW + 2 * MINUTE)
    assert night.visit() == WakeReport()
    assert (night.index.asked, night.wakes.read()) == ([], {})


@pytest.mark.parametrize(
    ("kind", "left", "since", "going"),
    [
        (OPERATOR, MINUTE - 1, LONG_AGO, True),
        (OPERATOR, MINUTE, LONG_AGO, False),
        (BREAKER, 30 * MINUTE, NOW - WATCHED_FOR + 1, True),
        (BREAKER, 30 * MINUTE, NOW - WATCHED_FOR, False),
    ],
)
def test_a_hold_that_may_end_soon_is_watched_between_passes(
    kind: str, left: int, since: int, going: bool
) -> None:
    night = Night()
    night.holds.hold(Hold("payment", kind, since, NOW + left, "", "amy"))
    assert night.visit().going is going


def test_what_waits_is_woken_when_every_scheduler_knows_of_the_end_at_the_rate() -> None:
    night = released(*names(A_SECOND + 1))
    report = night.visit()
    assert report.woken == [("payment", A_SECOND + 1)]
    assert report.going
    delays = list(night.sent().values())
    assert (delays[0], delays[1]) == (KNOWN_AFTER, KNOWN_AFTER + SECOND // A_SECOND)
    assert delays[A_SECOND] == KNOWN_AFTER + SECOND


def test_a_visit_wakes_no_more_than_go_on_until_shortly_after_the_next_one() -> None:
    night = released(*names(2_000))
    assert night.visit().woken == [("payment", FIRST_VISIT)]
    begin = NOW + KNOWN_AFTER + FIRST_VISIT * SECOND // A_SECOND
    assert night.wake().sent_to == begin
    assert night.visit(VISITED).woken == [("payment", VISITED * A_SECOND // SECOND)]
    assert night.sent()[f"ord-{FIRST_VISIT}"] == begin - night.now, "it goes on where it was"
    assert night.visit().woken == [], "nothing more goes on until then"
    assert night.visit(0, next_in=0) == WakeReport(going=True)


def test_a_visit_that_comes_late_goes_on_at_the_rate() -> None:
    night = released(*names(9_000))
    night.visit()
    assert night.visit(5 * MINUTE).woken == [
        ("payment", (VISITED + SENT_AHEAD) * A_SECOND // SECOND)
    ]
    assert night.sent()[f"ord-{FIRST_VISIT}"] == 0


def test_every_shard_that_there_ever_was_is_read() -> None:
    night = released("ord-1")
    night.leases.write(Leases(shards=2), seen=0)
    night.shards = 1
    night.supervisor = night.another()
    assert night.visit().woken == [("payment", 1)]


def test_the_holds_are_read_at_half_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    night = released("ord-1")
    holds, asked = night.holds.stored(), list[bool]()

    def stored(*, latest: bool = True) -> Sequence[Hold]:
        asked.append(latest)
        return holds

    monkeypatch.setattr(night.holds, "stored", stored)
    assert night.visit().woken == [("payment", 1)]
    assert asked == [False]


def test_an_unreadable_hold_is_not_about_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    night = Night()
    unreadable = unreadable_hold("payment", BREAKER, "no JSON", NOW)
    monkeypatch.setattr(night.holds, "stored", lambda **_: [unreadable])
    assert not night.visit().going


def test_what_waits_for_an_agent_is_woken_also_if_orders_are_on_hold() -> None:
    """Its record is not read for that: a scheduler parks it anew for the other hold."""
    night = released("ord-1")
    night.hold(NOW + 60 * MINUTE, workflow="story")
    assert night.visit().woken == [("payment", 1)]


def test_urgent_orders_come_first_then_those_that_have_waited_longest() -> None:
    night = Night()
    night.hold(ENDED)
    night.park("late", since=9)
    night.park("several", target="+", since=5)
    night.park("urgent", priority=Priority.URGENT, since=20)
    night.park("early")
    night.index.entries["payment", Priority.NORMAL].sort(key=lambda entry: entry.since)
    night.visit()
    assert list(night.sent()) == ["urgent", "early", "several", "late"]


def test_what_still_waits_is_looked_at_by_the_supervisor_itself_after_five_minutes() -> None:
    night = released("ord-1", "ord-2")
    night.visit()
    assert (night.wake().round, night.wake().next_at) == (1, NOW + ROUND_EVERY)
    assert night.visit(ROUND_EVERY - 1).woken == []
    assert night.visit(1).woken == [("payment", 2)]
    assert (night.looked, night.sent()) == (["ord-1", "ord-2"], {})


def test_a_supervisor_whose_time_is_over_looks_at_no_more() -> None:
    night = released(*names(3))
    night.visit()
    night.look_takes = MINUTE
    night.visit(ROUND_EVERY)
    assert night.looked == ["ord-0"]


def test_the_rounds_end_when_nothing_waits_any_more_and_not_in_the_first_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    night = released()
    assert night.visit().going
    assert not night.wake().done, "a scheduler with an old view may park one yet"
    assert night.visit(MINUTE).going
    assert night.wake().done
    assert night.visit(MINUTE) == WakeReport()
    with monkeypatch.context() as patch:
        patch.setattr(night.wakes, "read", None)
        assert night.visit() == WakeReport(), "it knows that it is done"
    night.index.asked.clear()
    night.supervisor = night.another()
    assert night.visit() == WakeReport()
    assert night.index.asked == []


def test_a_round_of_several_visits_has_found_something_if_one_of_them_has() -> None:
    night = released(*names(FIRST_VISIT + 1))
    night.visit()
    night.index.entries["payment", Priority.NORMAL].pop()
    assert night.visit(VISITED).woken == []
    assert (night.wake().round, night.wake().next_at) == (1, night.now + ROUND_EVERY)
    assert night.visit(ROUND_EVERY).woken == [("payment", FIRST_VISIT)], "from the first one on"


def test_a_round_that_finds_nothing_is_the_last_one() -> None:
    night = released("ord-1")
    night.visit()
    night.index.entries.clear()
    night.visit(ROUND_EVERY)
    assert night.wake().done


def test_what_waits_after_the_last_round_is_left_to_its_own_checks() -> None:
    night = released("ord-1")
    rounds = 0
    while "payment" not in night.wakes.read() or not night.wake().done:
        rounds += len(night.visit(ROUND_EVERY).woken)
    assert rounds == LAST_ROUND


def test_a_new_hold_stops_it_and_its_end_begins_anew() -> None:
    night = released(*names(2_000))
    night.visit()
    night.hold(NOW + 10 * MINUTE)
    assert night.visit(VISITED).woken == []
    night.hold(ENDED + 1)
    assert night.visit(VISITED).woken == [("payment", FIRST_VISIT)]
    assert "ord-0" in night.sent()


def test_of_two_supervisors_one_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    night = released("ord-1")
    monkeypatch.setattr(night.wakes, "write", lambda *_, **__: False)
    assert night.visit().woken == []
    assert night.sent() == {}


@pytest.mark.parametrize(
    ("problem", "going", "refused"),
    [(TryAgain("throttled"), True, None), (CallRefused("not allowed"), False, "not allowed")],
)
def test_what_could_not_be_done_is_reported_and_done_by_the_next_visit(
    problem: Exception, going: bool, refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = released("ord-1")

    def fails() -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(night.wakes, "read", fails)
        report = night.visit()
    assert (report.problem, report.going, report.refused) == (str(problem), going, refused)
    assert night.visit().woken == [("payment", 1)]


# --- an open circuit ---------------------------------------------------------------------------


def on_trial(many: int) -> Night:
    night = Night()
    night.hold(NOW - 1, BREAKER)
    night.park(*names(many))
    return night


def test_one_order_tries_a_circuit_whose_recovery_time_is_over_and_it_is_the_urgent_one() -> None:
    night = on_trial(2)
    night.park("urgent", priority=Priority.URGENT)
    report = night.visit()
    assert (report.tried, report.woken, report.going) == (["payment"], [], True)
    assert night.sent() == {"urgent": 0}


def test_if_nothing_is_heard_twice_as_many_are_looked_at_each_time() -> None:
    night = on_trial(1_100)
    night.visit()
    assert night.visit(TRIED_EVERY - 1) == WakeReport(going=True)
    assert night.visit(1).tried == ["payment"]
    assert (night.looked, night.sent()) == (["ord-0", "ord-1"], {})
    night.visit(TRIED_EVERY)
    assert night.looked == names(4)
    for _ in range(9):
        night.visit(TRIED_EVERY)
    assert night.looked == names(1_024), "and no more than that"


def test_a_circuit_that_nobody_waits_for_is_looked_at_less_and_less() -> None:
    night = on_trial(0)
    gaps = []
    for _ in range(13):
        report = night.visit()
        assert (report.tried, report.going) == ([], False)
        gaps.append(night.wake().next_at - night.now)
        night.now = night.wake().next_at
    assert gaps == [TRIED_EVERY * 2 ** min(number, 10) for number in range(13)]


def test_a_circuit_that_opens_again_is_tried_by_one_order_again() -> None:
    night = on_trial(4)
    for _ in range(3):
        night.visit(TRIED_EVERY)
    night.hold(night.now + SECOND, BREAKER)
    night.visit(SECOND)
    assert list(night.sent()) == ["ord-0"]


# --- holds on orders ---------------------------------------------------------------------------


def test_of_the_orders_that_wait_for_holds_on_orders_those_are_woken_that_none_is_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything is held but for a half, and the workflow of every second order."""
    night = Night()
    night.hold(NOW + 60 * MINUTE, workflow=EVERY_WORKFLOW, share=50)
    night.hold(NOW + 60 * MINUTE, workflow="odd")
    every = names(40)
    half = every[::4]
    night.park(*every, "gone", "too new", target=EVERY_ORDER)
    loaded = []

    def load(task_id: str, *_: object, **__: object) -> Task | None:
        loaded.append(task_id)
        if task_id == "too new":
            raise SchemaTooNew(task_id, 99)
        task = new_task(PLAN, task_id, ProcessingOptions(), NOW, shards=1)
        odd = int(task_id.partition("-")[2] or 0) % 2
        return None if task_id == "gone" else replace(task, workflow="odd" if odd else "even")

    monkeypatch.setattr(night.index, "load", load)
    monkeypatch.setattr(holds_module, "is_in_share", lambda name, share: share and name not in half)
    night.visit()
    assert list(night.sent()) == [name for name in every[::2] if name not in half]
    assert set(loaded).isdisjoint(half), "what its id alone shows is not read"


def test_a_visit_reads_at_most_a_thousand_records_to_see_what_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    night = Night()
    night.hold(ENDED, workflow="other")
    night.hold(NOW + 60 * MINUTE, workflow="story")
    night.park(*names(MOST_LOADED + 10), target=EVERY_ORDER)
    loaded = []

    def load(task_id: str, *_: object, **__: object) -> Task:
        loaded.append(task_id)
        return new_task(PLAN, task_id, ProcessingOptions(), NOW, shards=1)

    monkeypatch.setattr(night.index, "load", load)
    assert night.visit().woken == []
    assert loaded == names(MOST_LOADED)
    night.visit(VISITED)
    assert loaded == names(MOST_LOADED + 10), "it goes on where it was"


def test_a_release_wakes_the_first_ones_itself_in_the_same_order() -> None:
    night = released(*names(FIRST + 10))
    night.park("urgent", priority=Priority.URGENT)
    parked = ParkedOrders(night.index, lambda: night.now, 2)
    found = wake_first(parked, night.outbox, "payment", (), NOW + KNOWN_AFTER)
    assert found.orders == ("urgent", *names(FIRST - 1))
    assert found.more
    assert list(night.sent().values())[:2] == [KNOWN_AFTER, KNOWN_AFTER + SECOND // A_SECOND]
    everything = Hold("", OPERATOR, NOW, NOW + MINUTE, "", "amy", workflow=EVERY_WORKFLOW)
    assert wake_first(parked, night.outbox, "*", (everything,), NOW).orders == ()


def test_orders_that_were_parked_at_one_instant_are_woken_together() -> None:
    night = Night()
    night.hold(ENDED)
    for number in range(FIRST_VISIT + 5):
        night.park(f"ord-{number}")
    night.park("later", since=1)
    assert night.visit().woken == [("payment", FIRST_VISIT + 5)]

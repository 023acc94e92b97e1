"""What a shift reads of a stack: its limits, its boundaries of time, and what it says of both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from roundsman.engine.due import Lane, lane_key
from roundsman.errors import CallRefused, SchemaTooNew, UnreadableRecord
from roundsman.model.bulk_run import BulkRecord, ListedRun, Run, Terms
from roundsman.model.events import CommandSource, HistoryRow, Resubmit
from roundsman.model.failure import Group
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import Published
from roundsman_console.facts.course.marks import ONE_DEPLOYMENT
from roundsman_console.facts.finding.report import Finding, StandingAlerts, Unseen
from roundsman_console.facts.finding.standing import AlarmChange
from roundsman_console.facts.finding.table import FindingKind
from roundsman_console.facts.group.over import FailuresInHistories
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.open_orders import entries_of
from roundsman_console.facts.shift import reading
from roundsman_console.facts.shift.reading import LaneRead, ShiftOrders, read_shift
from roundsman_console.facts.shift.report import NOT_KEPT, Shift
from tests.console.shelves import Shelves, archived, open_task
from tests.console.step_samples import AT

SINCE = AT - 480 * MINUTE
EARLIER = SINCE - 1
GROUP = Group(
    id="f-1a2b3c4d",
    workflow="story",
    step="charge",
    how="archived",
    error_type="CardDeclined",
    message="the bank said no",
    opened_by="ord-1",
    opened_at=SINCE,
    since=SINCE,
    count=3,
    last_at=SINCE,
)


def group(place: int) -> Group:
    return replace(GROUP, id=f"f-{place:08x}", last_at=SINCE + place)


def hold(agent: str, since: int) -> Hold:
    return Hold(agent, OPERATOR, since, AT + 60 * MINUTE, "maintenance", "amy")


def bulk(place: int, over: str = GROUP.id, started_at: int = AT) -> BulkRecord:
    name = f"b-{place:08x}"
    run = Run(
        id=name,
        event=Resubmit(CommandSource(name, "amy", "it works")),
        by="amy",
        starter="AROA:amy",
        reason="it works",
        selection=f"--group {over}",
        started_at=started_at,
        selected=2,
        terms=Terms(),
    )
    return BulkRecord(run)


def ended(task_id: str, at: int, state: TaskState = TaskState.COMPLETED) -> Task:
    born = open_task(task_id, at - MINUTE)
    return replace(born, state=state, lane=lane_key(Lane.DONE, born.shard), due_at=at, ended_at=at)


def touched(task: Task, command: str = "c-1") -> Task:
    """The task after a command of a person."""
    return replace(task, command_ids=(command,))


def given(command: str, at: int) -> HistoryRow:
    return HistoryRow(at, at, "resubmit", None, None, "the bank is back", "amy", command, "AROA:x")


@dataclass
class Night:
    """What a stack has when its shift is read, and which of its parts cannot be read."""

    patch: pytest.MonkeyPatch
    orders: Shelves = field(default_factory=Shelves)
    rows: list[Group] = field(default_factory=list)
    counted: list[Group] = field(default_factory=list)
    standing: StandingAlerts = field(default_factory=StandingAlerts)
    alarms: list[AlarmChange] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    runs: list[BulkRecord] = field(default_factory=list)
    open_runs: set[str] = field(default_factory=set)
    unplanned: set[str] = field(default_factory=set)
    notes: dict[str, list[GroupNote]] = field(default_factory=dict)
    visited: int = AT
    histories: dict[str, list[HistoryRow]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """The parts that AWS does not let this person read."""
    unreadable: dict[str, Exception] = field(default_factory=dict)
    """What the reading of an order's history or of a bulk run raises."""
    asked: list[str] = field(default_factory=list)
    """The orders whose histories, the runs and the groups whose notes were read."""
    told: dict[str, list[str]] = field(default_factory=dict)
    """The runs of which orders were read, by their group."""

    def _may(self, part: str) -> None:
        if part in self.refused:
            raise CallRefused("AccessDenied")

    def _load(self, run_id: str, _starter: str) -> BulkRecord | None:
        self.asked.append(run_id)
        if run_id in self.unreadable:
            raise self.unreadable[run_id]
        found = {one.run.id: one for one in self.runs if one.run.id not in self.unplanned}
        return found.get(run_id)

    def _listed(self) -> list[ListedRun]:
        self._may("Bulk runs")
        return [
            ListedRun(
                one.run.id,
                one.run.starter,
                one.run.started_at,
                is_open=one.run.id in self.open_runs,
            )
            for one in self.runs
        ]

    def _noted(self, _since: int) -> Sequence[str]:
        self._may("Notes")
        return [*self.notes]

    def _notes_of(self, name: str) -> Sequence[GroupNote]:
        self.asked.append(name)
        return self.notes[name]

    def _history(self, task_id: str) -> Sequence[HistoryRow]:
        self.asked.append(task_id)
        self._may("Commands on single orders")
        if task_id in self.unreadable:
            raise self.unreadable[task_id]
        return self.histories.get(task_id, [])

    def _failures(
        self, _stack: DeployedStack, runs: Sequence[BulkRecord], most: int
    ) -> FailuresInHistories:
        over = runs[0].run.selection.split()[1]
        self._may(f"Failure group {over}")
        self.told[over] = [f"{one.run.id}: {most}" for one in runs]
        return FailuresInHistories()

    def reads(self, since: int = SINCE) -> Shift:
        """Read the shift of this stack at AT."""

        def gives(part: str, value: Callable[[], object]) -> Callable[..., object]:
            def ask(*_: object) -> object:
                self._may(part)
                return value()

            return ask

        shelf = self.orders.stack()
        lanes = {
            Lane.ARCHIVED: "Orders that need a person",
            Lane.DONE: "Orders that ended",
            Lane.OPEN: "Open orders",
        }

        def entries(
            stack: DeployedStack, lane: Lane, *, since: int, newest_first: bool
        ) -> Iterator[object]:
            self._may(lanes[lane])
            return entries_of(stack, lane, since=since, newest_first=newest_first)

        shelf.__dict__.update(
            groups=SimpleNamespace(groups=gives("Failure groups", lambda: self.rows)),
            holds=SimpleNamespace(stored=gives("Holds and releases", lambda: self.holds)),
            bulk_runs=SimpleNamespace(listed=self._listed, load=self._load),
            group_notes=SimpleNamespace(noted_since=self._noted, of=self._notes_of),
            leases=SimpleNamespace(
                read=lambda: SimpleNamespace(
                    by_shard={0: SimpleNamespace(visited_at=self.visited)} if self.visited else {}
                )
            ),
            ping=SimpleNamespace(aws_time=lambda at: at),
            tasks=SimpleNamespace(history=self._history),
        )

        def shown(stack: DeployedStack, tasks: Iterable[Task]) -> tuple[Task, ...]:
            self._may("The causes of failures")
            return shown_tasks(stack, tasks)

        with self.patch.context() as patch:
            for name, found in {
                "now": lambda: AT,
                "counted_groups": lambda *_: self.counted,
                "read_standing": gives("What is open now", lambda: self.standing),
                "alarm_changes": gives("Alarms", lambda: self.alarms),
                "read_versions_of": gives("Deployments", lambda: self.published),
                "read_failures": self._failures,
                "entries_of": entries,
                "shown_tasks": shown,
            }.items():
                patch.setattr(reading, name, found)
            return read_shift(shelf, since)


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Night:
    """A stack in which nothing has happened."""
    return Night(monkeypatch)


def said(shift: Shift) -> list[str]:
    """What is not known, without what is never known."""
    return [one for one in shift.left_out if one not in NOT_KEPT]


def full(night: Night) -> None:
    """Something of everything has happened."""
    night.rows = [GROUP]
    night.standing = StandingAlerts(
        [Finding(FindingKind.OWED_UNSENT, "payment", "payment is held")]
    )
    night.alarms = [AlarmChange("BacklogAlarm", AT, raised=True, description="too old")]
    night.holds = [hold("payment", SINCE)]
    night.published = [Published("Payment", 41, SINCE)]
    night.runs = [bulk(1)]
    night.notes = {GROUP.id: [GroupNote(at=SINCE, group=GROUP.id, by="amy", text="told")]}
    night.orders.put(touched(archived("ord-1", SINCE)), touched(open_task("ord-2", SINCE)))
    night.orders.put(touched(ended("ord-3", SINCE)))
    night.histories = {f"ord-{place}": [given(f"c-{place}", SINCE)] for place in (1, 2, 3)}


def sizes(shift: Shift) -> dict[str, int]:
    """The number of entries of each part."""
    return {
        "What is open now": len(shift.open_now),
        "Failure groups": len(shift.groups),
        "Alarms": len(shift.alerts),
        "Holds and releases": len(shift.holds),
        "Commands on single orders": len(shift.commands),
        "Bulk runs": len(shift.bulk_runs),
        "Notes": len(shift.notes),
        "Deployments": len(shift.deployments),
    }


# ---- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "lost"),
    [
        ("Failure groups", {}),
        ("What is open now", {"What is open now": 1}),
        ("Alarms", {"Alarms": 1}),
        ("Holds and releases", {"Holds and releases": 1}),
        ("Deployments", {"Deployments": 1}),
        ("Bulk runs", {"Bulk runs": 1}),
        ("Notes", {"Notes": 1}),
        ("Commands on single orders", {"Commands on single orders": 3}),
        ("Orders that need a person", {"Commands on single orders": 1, "Failure groups": 1}),
        ("Orders that ended", {"Commands on single orders": 1}),
        ("Open orders", {"Commands on single orders": 1}),
        ("The causes of failures", {"Failure groups": 1}),
        (f"Failure group {GROUP.id}", {}),
    ],
)
def test_a_part_that_cannot_be_read_is_said_and_all_others_are_shown(
    night: Night, part: str, lost: Mapping[str, int]
) -> None:
    full(night)
    whole = sizes(night.reads())
    assert whole == {
        "What is open now": 1,
        "Failure groups": 2,
        "Alarms": 1,
        "Holds and releases": 1,
        "Commands on single orders": 3,
        "Bulk runs": 1,
        "Notes": 1,
        "Deployments": 1,
    }
    night.refused = {part}
    found = night.reads()
    assert [one.partition(":")[0] for one in found.unread] == [part]
    assert sizes(found) == {name: many - lost.get(name, 0) for name, many in whole.items()}


def test_a_bulk_run_that_cannot_be_read_hides_no_other_one(night: Night) -> None:
    night.runs = [bulk(1), bulk(2), bulk(3)]
    night.unreadable = {"b-00000002": UnreadableRecord("bulk", "At", "is no number")}
    night.unplanned = {"b-00000001"}
    found = night.reads()
    assert [one.run for one in found.bulk_runs] == ["b-00000003"]
    assert [one.partition(":")[0] for one in found.unread] == ["Bulk run b-00000002"]


@pytest.mark.parametrize(
    "error", [UnreadableRecord("ord-1", "At", "is no number"), SchemaTooNew("ord-1", 9, 1)]
)
def test_a_history_that_cannot_be_read_hides_no_command_on_another_order(
    night: Night, error: Exception
) -> None:
    night.orders.put(touched(archived("ord-1")), touched(archived("ord-2")))
    night.histories = {"ord-2": [given("c-2", AT)]}
    night.unreadable = {"ord-1": error}
    found = night.reads()
    assert [one.order for one in found.commands] == ["ord-2"]
    assert not found.unread


def test_what_a_local_stack_does_not_have_is_not_said_to_be_unread(night: Night) -> None:
    unseen = [Unseen("Alarms", "no such API", lacking=True), Unseen("RejectedQueue", "no right")]
    night.standing = StandingAlerts(unseen=unseen)
    assert night.reads().unread == ["RejectedQueue: no right"]


# ---- boundaries of time --------------------------------------------------------------------------


def test_the_first_and_the_last_instant_are_in_the_shift_and_what_was_before_is_not(
    night: Night,
) -> None:
    ats = {"before": EARLIER, "first": SINCE, "last": AT}
    night.holds = [hold(name, at) for name, at in ats.items()]
    night.published = [Published(name, 1, at) for name, at in ats.items() if name != "before"]
    night.published.append(Published("before", 1, EARLIER - ONE_DEPLOYMENT))
    night.runs = [bulk(place, started_at=at) for place, at in enumerate(ats.values())]
    night.notes = {
        GROUP.id: [GroupNote(at=at, group=GROUP.id, by=name, text="x") for name, at in ats.items()]
    }
    found = night.reads()
    assert [one.about for one in found.holds] == ["first", "last"]
    assert [one.about for one in found.deployments] == ["first", "last"]
    assert [one.run for one in found.bulk_runs] == ["b-00000001", "b-00000002"]
    assert [one.by for one in found.notes] == ["first", "last"]


def test_a_bulk_run_from_before_is_in_the_shift_while_it_is_open(night: Night) -> None:
    night.runs = [bulk(1, started_at=EARLIER), bulk(2, started_at=EARLIER)]
    night.open_runs = {"b-00000002"}
    assert [one.run for one in night.reads().bulk_runs] == ["b-00000002"]


def test_orders_that_ended_before_are_not_read_and_open_ones_are_whenever_they_are_due(
    night: Night,
) -> None:
    night.orders.put(touched(archived("ord-1", EARLIER)), touched(ended("ord-2", EARLIER)))
    night.orders.put(touched(replace(open_task("ord-3"), due_at=EARLIER)))
    night.histories = {f"ord-{place}": [given(f"c-{place}", AT)] for place in (1, 2, 3)}
    found = night.reads()
    assert [one.order for one in found.commands] == ["ord-3"]
    assert not found.groups


# ---- what is looked at, and in which order -------------------------------------------------------


def test_the_failures_of_a_shift_are_the_archived_and_the_undone_orders() -> None:
    undone = ended("ord-2", AT, TaskState.UNDONE)
    done = [ended("ord-3", AT), ended("ord-4", AT, TaskState.CANCELLED)]
    failed, opened = archived("ord-1"), open_task("ord-5")
    orders = ShiftOrders(LaneRead([failed]), LaneRead([undone, *done]), LaneRead([opened]))
    assert orders.failures == (failed, undone)
    assert orders.tasks == (failed, opened, undone, *done), "the likeliest first"


def test_the_histories_of_failed_orders_are_read_first_and_others_are_said_to_be_left_out(
    night: Night,
) -> None:
    night.orders.put(touched(ended("ord-1", AT)), touched(open_task("ord-2")))
    night.orders.put(touched(archived("ord-3")), archived("ord-4"))
    night.orders.put(touched(archived("ord-5"), "b-00000001"))
    night.patch.setattr(reading, "MOST_HISTORIES", 1)
    assert said(night.reads()) == [
        "The histories of 2 further orders with a command were not read."
    ]
    assert night.asked == ["ord-3"]
    night.patch.setattr(reading, "MOST_HISTORIES", 3)
    assert not said(night.reads())
    assert sorted(night.asked[1:]) == ["ord-1", "ord-2", "ord-3"]


@pytest.mark.parametrize(
    ("limit", "task", "says"),
    [
        ("MOST_FAILED", archived, "Of the orders that need a person, the 1 that failed last were"),
        ("MOST_ENDED", ended, "Of the orders that ended, the 1 that ended last were read"),
        ("MOST_OPEN", open_task, "Of the open orders, the 1 that are due first were read."),
    ],
)
def test_the_orders_of_a_lane_that_are_not_read_are_said(
    night: Night, limit: str, task: Callable[[str, int], Task], says: str
) -> None:
    night.patch.setattr(reading, limit, 1)
    night.orders.put(task("ord-1", AT))
    assert not said(night.reads())
    night.orders.put(task("ord-2", AT))
    [sentence] = said(night.reads())
    assert sentence.startswith(says)


def test_the_newest_bulk_runs_are_read_and_the_others_are_said_to_be_left_out(
    night: Night,
) -> None:
    night.patch.setattr(reading, "MOST_RUNS", 2)
    night.runs = [bulk(place, started_at=SINCE + place) for place in range(2)]
    assert not any("bulk runs" in one for one in said(night.reads()))
    night.runs.append(bulk(2))
    night.asked.clear()
    found = night.reads()
    assert [one.run for one in found.bulk_runs] == ["b-00000001", "b-00000002"]
    assert night.asked == ["b-00000001", "b-00000002"]
    assert "Of 3 bulk runs, the 2 newest were read." in said(found)


def test_of_the_groups_with_a_bulk_run_the_latest_are_read_by_the_first_and_the_last_run(
    night: Night,
) -> None:
    night.patch.setattr(reading, "MOST_CAUSES", 1)
    night.rows = [GROUP, group(9)]
    night.runs = [bulk(1), bulk(2)]
    assert not said(night.reads())
    night.runs = [bulk(1, group(9).id), bulk(2), bulk(3), bulk(4)]
    night.told.clear()
    causes, orders = said(night.reads())
    assert night.told == {GROUP.id: ["b-00000004: 4", "b-00000002: 4"]}
    assert causes.startswith("Of 2 failure groups with a bulk run, 1 were read")
    assert orders.startswith("Of more than two bulk runs over one failure group")


def test_notes_are_in_one_line_in_the_order_of_time_whatever_their_group(night: Night) -> None:
    def note(place: int, at: int) -> GroupNote:
        return GroupNote(at=at, group=group(place).id, by="amy", text=f"so\n  it is {at - AT}")

    night.notes = {group(1).id: [note(1, AT), note(1, AT - 2)], group(2).id: [note(2, AT - 1)]}
    assert [one.text for one in night.reads().notes] == ["so it is -2", "so it is -1", "so it is 0"]
    night.patch.setattr(reading, "MOST_NOTED", 2)
    assert not said(night.reads())
    night.notes[group(3).id] = [note(3, AT)]
    night.asked.clear()
    assert said(night.reads()) == [
        "Of 3 failure groups with a note, the 2 with the newest were read."
    ]
    assert sorted(night.asked) == [group(1).id, group(2).id]


def test_a_list_ends_and_the_number_of_what_it_leaves_out_is_said(night: Night) -> None:
    night.patch.setattr(reading, "MOST_ROWS", 2)

    def has(many: int) -> Shift:
        ats = [AT - MINUTE + place for place in range(many)]
        night.rows = [group(place) for place in range(many)]
        night.orders.put(touched(open_task("ord-1")))
        night.histories = {"ord-1": [given(f"c-{at}", at) for at in ats]}
        notes = [GroupNote(at=at, group=GROUP.id, by="amy", text="x") for at in ats]
        night.notes = {GROUP.id: notes}
        return night.reads()

    assert not said(has(2))
    found = has(3)
    assert [one.group for one in found.groups] == [group(2).id, group(1).id], "the latest"
    assert [one.at - AT + MINUTE for one in found.commands] == [1, 2]
    assert [one.at - AT + MINUTE for one in found.notes] == [1, 2]
    assert said(found) == [
        "1 further failure group not listed.",
        "1 further command not listed.",
        "1 further note not listed.",
    ]


# ---- what is said of it --------------------------------------------------------------------------


def test_a_group_has_the_number_that_was_counted_now(night: Night) -> None:
    night.rows, night.counted = [GROUP], [replace(GROUP, count=0)]
    assert night.reads().groups[0].standing == "calm"
    night.counted = [replace(GROUP, count=1)]
    assert night.reads().groups[0].standing == "open"


def test_a_group_that_is_over_is_said_to_have_lost_its_alerts(night: Night) -> None:
    night.runs = [bulk(1)]
    assert f"The alerts of {GROUP.id} are not kept: the group is over." in said(night.reads())


def test_what_is_open_now_has_the_silence_of_the_supervisor_and_the_worst_is_first(
    night: Night,
) -> None:
    info = Finding(FindingKind.OWED_UNSENT, "payment", "payment is held", graded="info")
    error = Finding(FindingKind.OWED_UNSENT, "mail", "mail is held", graded="error")
    night.standing = StandingAlerts([info, error])
    assert [one.severity for one in night.reads().open_now] == ["error", "info"]
    night.visited = SINCE
    [first, *_] = night.reads().open_now
    assert (first.since, first.severity) == (SINCE, "critical")
    assert "The supervisor does not run" in first.sentence
    night.visited = 0
    [first, *_] = night.reads().open_now
    assert (first.since, "The supervisor has never run" in first.sentence) == (None, True)


def test_nothing_is_shown_of_a_failure_whose_plan_cannot_be_read(night: Night) -> None:
    """The plan says what is masked."""
    night.orders.put(archived("ord-1"))
    assert "POST answered 402" in night.reads().groups[0].cause

    def unreadable(*_: object) -> None:
        raise UnreadableRecord("plan", "Steps", "is no map")

    night.patch.setattr("tests.console.shelves.NoPlans.plan", unreadable)
    assert "POST answered 402" not in night.reads().groups[0].cause

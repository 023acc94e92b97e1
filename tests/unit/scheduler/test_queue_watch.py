"""What decisions know of the queues that the scheduler reads, and what it costs to look."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Retry
from roundsman.engine.timeouts import CONFIRMED_FOR
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import (
    COMMANDS,
    MARK_VALID_FOR,
    NOTHING_KNOWN,
    UNKNOWN,
    QueueDepth,
    QueueView,
    SchedulerQueues,
)
from roundsman.model.task import Task
from roundsman.scheduler.queue_watch import LOOK_KEPT_FOR, WANTED_AGAIN_AFTER, QueueWatch
from roundsman_testing.memory import MemoryAgentBoard
from tests.support.machine_world import T0, World, plan, step

LATE = T0 + 31 * SECOND
EMPTY, WAITING, HIDDEN = QueueDepth(0, 0), QueueDepth(3, 0), QueueDepth(0, 1)
REPLIES, WISH = "worker/replies", "worker/wanted"


class Board(MemoryAgentBoard):
    """A board whose marks and depths a test sets, and that records what is looked at."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.now = clock
        self.depths: dict[str, QueueDepth | Exception | None] = {REPLIES: EMPTY, COMMANDS: EMPTY}
        self.stored: dict[str, ReadMark] = {}
        self.looks: list[str] = []
        self.wishes: list[tuple[str, str, int]] = []
        self.refuses = False

    def marks(self) -> dict[str, ReadMark]:
        return dict(self.stored)

    def depth(self, key: str) -> QueueDepth | None:
        self.looks.append(key)
        found = self.depths[key]
        if isinstance(found, Exception):
            raise found
        return found

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        if self.refuses:
            raise CallRefused("no right to update the row")
        self.wishes.append((agent, priority, sent_at))


@dataclass
class Watched:
    """A task whose only attempt is late since T0 + 30 s, and a watch of the queues."""

    in_passes: bool = False
    now: int = LATE
    board: Board = field(init=False)
    watch: QueueWatch = field(init=False)
    plan: Plan = field(default_factory=lambda: plan(step("a", retry=Retry(max_attempts=5))))
    task: Task = field(init=False)

    def __post_init__(self) -> None:
        world = World(self.plan)
        world.start()
        self.task = world.task
        self.board = Board(lambda: self.now)
        self.watch = QueueWatch(self.board, lambda: self.now, in_passes=self.in_passes)

    def known(self, *, at: int | None = None) -> SchedulerQueues:
        self.now = self.now if at is None else at
        return self.watch.known(self.plan, self.task)

    def replies(self, *, at: int | None = None) -> QueueView:
        return self.known(at=at).replies["worker"]


def new_task() -> Task:
    return World(plan(step("a"))).task


# --- When nothing is looked at -----------------------------------------------------------------


def test_a_task_of_which_nothing_is_late_costs_no_look() -> None:
    watched = Watched(now=T0 + 29 * SECOND)
    assert watched.known() is NOTHING_KNOWN
    assert watched.watch.known(watched.plan, new_task()) is NOTHING_KNOWN, "its Start is due"
    assert watched.watch.known(None, watched.task) is NOTHING_KNOWN, "its plan is not stored"
    assert watched.board.looks == []


def test_only_a_supervisor_looks_at_the_schedulers_queue() -> None:
    watched = Watched()
    assert watched.known().commands_wait is False
    assert watched.board.looks == [REPLIES]
    passes = Watched(in_passes=True)
    passes.known()
    assert passes.board.looks == [COMMANDS, REPLIES]


@pytest.mark.parametrize(("depth", "wait"), [(WAITING, True), (HIDDEN, False), (EMPTY, False)])
def test_commands_wait_if_some_are_visible(depth: QueueDepth, wait: bool) -> None:
    watched = Watched(in_passes=True)
    watched.board.depths[COMMANDS] = depth
    known = watched.watch.known(plan(step("a")), new_task())
    assert known == SchedulerQueues({}, commands_wait=wait)
    assert watched.board.looks == [COMMANDS]


# --- What a look says --------------------------------------------------------------------------


def test_an_empty_queue_is_empty_since_the_first_look_that_found_it_so() -> None:
    watched = Watched()
    assert watched.replies() == QueueView(None, LATE, LATE, 0)
    later = LATE + MINUTE
    assert watched.replies(at=later) == QueueView(None, later, LATE, 0)


@pytest.mark.parametrize("depth", [WAITING, HIDDEN])
def test_a_queue_with_messages_is_not_empty_and_later_empty_anew(depth: QueueDepth) -> None:
    watched = Watched()
    watched.known()
    watched.board.depths[REPLIES] = depth
    assert watched.replies(at=LATE + MINUTE) == QueueView(None, LATE + MINUTE, None, 0)
    watched.board.depths[REPLIES] = EMPTY
    again = LATE + 2 * MINUTE
    assert watched.replies(at=again) == QueueView(None, again, again, 0)


def test_of_a_queue_that_cannot_be_counted_now_is_not_known_that_it_is_empty() -> None:
    watched = Watched()
    watched.known()
    watched.board.depths[REPLIES] = TryAgain("throttled")
    assert watched.replies(at=LATE + MINUTE) == QueueView(None, LATE + MINUTE, None, 0)


def test_commands_may_wait_in_a_queue_that_cannot_be_counted_now() -> None:
    watched = Watched(in_passes=True)
    watched.board.depths[COMMANDS] = TryAgain("throttled")
    assert watched.known().commands_wait


@pytest.mark.parametrize("depth", [CallRefused("no right to count"), None])
def test_of_a_queue_that_nobody_may_count_only_the_mark_is_known(
    depth: CallRefused | None,
) -> None:
    watched = Watched(in_passes=True)
    watched.board.depths = {REPLIES: depth, COMMANDS: depth}
    assert watched.known() == SchedulerQueues({"worker": UNKNOWN})
    mark = ReadMark(LATE - MINUTE, LATE)
    watched.board.stored[REPLIES] = mark
    assert watched.replies() == QueueView(mark)
    assert watched.board.wishes == []


def test_the_mark_of_the_queue_is_reported() -> None:
    watched = Watched()
    mark = watched.board.stored[REPLIES] = ReadMark(LATE - MINUTE, LATE)
    assert watched.replies() == QueueView(mark, LATE, LATE, 0)


def test_an_empty_queue_must_be_confirmed_while_commands_wait_or_are_read_late() -> None:
    passes = Watched(in_passes=True)
    passes.board.depths[COMMANDS] = WAITING
    assert passes.replies().confirmed_for == CONFIRMED_FOR
    watched = Watched()
    watched.board.stored[COMMANDS] = ReadMark(LATE - MINUTE, LATE)
    assert watched.replies().confirmed_for == CONFIRMED_FOR
    assert watched.replies(at=LATE + MARK_VALID_FOR + 1).confirmed_for == 0


def test_one_timeout_after_the_other_is_counted_by_the_same_instance() -> None:
    """The queue of a dead agent is empty all the time, and not only since the last attempt."""
    world = World(plan(step("a", retry=Retry(max_attempts=3))))
    board = Board(lambda: world.now)
    watch = QueueWatch(board, lambda: world.now)
    for _ in range(3):
        world.start()
        world.until_overdue("a")
        world.queues = watch.known(world.plan, world.task)
        world.inspect()
    assert world.record("a").failure_count == 3


# --- How often it is looked --------------------------------------------------------------------


def test_a_scheduler_keeps_a_look_for_five_seconds() -> None:
    watched = Watched()
    for at in (LATE, LATE + 1, LATE + LOOK_KEPT_FOR - 1):
        assert watched.replies(at=at).looked_at == LATE
    assert watched.board.looks == [REPLIES]
    watched.replies(at=LATE + LOOK_KEPT_FOR)
    assert watched.board.looks == [REPLIES, REPLIES]
    assert LOOK_KEPT_FOR == 5 * SECOND


def test_a_pass_looks_once_at_each_queue_for_any_number_of_tasks() -> None:
    watched = Watched(in_passes=True)
    for n in range(20):
        watched.known(at=LATE + n * SECOND)
    assert watched.board.looks == [COMMANDS, REPLIES]
    watched.watch.forget()
    view = watched.replies(at=LATE + MINUTE)
    assert (view.looked_at, view.empty_since) == (LATE + MINUTE, LATE)
    assert len(watched.board.looks) == 4


# --- The wish for a mark -----------------------------------------------------------------------


def test_a_mark_is_wanted_of_a_queue_with_messages_and_not_of_an_empty_one() -> None:
    watched = Watched()
    watched.known()
    assert watched.board.wishes == []
    watched.board.depths[REPLIES] = WAITING
    watched.known(at=LATE + LOOK_KEPT_FOR)
    assert watched.board.wishes == [("worker", "wanted", LATE + LOOK_KEPT_FOR)]


def test_a_wish_is_stored_at_most_once_a_minute() -> None:
    watched = Watched()
    watched.board.depths[REPLIES] = WAITING
    watched.board.stored[WISH] = ReadMark(LATE, LATE)
    assert watched.replies(at=LATE + WANTED_AGAIN_AFTER - 1).looked_at is not None
    assert watched.board.wishes == []
    watched.known(at=LATE + WANTED_AGAIN_AFTER)
    assert len(watched.board.wishes) == 1
    assert WANTED_AGAIN_AFTER == MINUTE


def test_where_no_wish_may_be_stored_nothing_is_known() -> None:
    """No mark would ever come, and the timeout would never count."""
    watched = Watched()
    watched.board.depths[REPLIES] = WAITING
    watched.board.refuses = True
    assert watched.replies() is UNKNOWN


# --- The lag -----------------------------------------------------------------------------------


def test_the_lag_of_the_scheduler_is_the_longest_that_a_mark_shows() -> None:
    watched = Watched()
    assert watched.watch.scheduler_lag() == 0
    watched.board.stored = {
        REPLIES: ReadMark(LATE - 20 * SECOND, LATE),
        COMMANDS: ReadMark(LATE - 30 * SECOND, LATE),
        WISH: ReadMark(LATE - MINUTE, LATE),
    }
    assert watched.watch.scheduler_lag() == 30 * SECOND
    watched.now = LATE + MARK_VALID_FOR + 1
    assert watched.watch.scheduler_lag() == 0

"""What is known of one order: `show`, `why`, `timeline`, its page and drawings read it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.quorums import is_unblocked
from roundsman.model.events import Agents, HistoryRow
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, format_duration
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.scheduler_queues import COMMANDS, QueueView, replies_key
from roundsman.model.task import StepRecord, Task
from roundsman_console.base.constraints import Count
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.effects import Effects, effects_of, step_names


@dataclass(frozen=True, slots=True)
class SchedulerNow:
    """What is known of the queues that the scheduler reads, at one instant."""

    marks: Mapping[str, ReadMark] = field(default_factory=dict)
    """The read marks of the queues, by key (`roundsman.model.scheduler_queues`)."""
    waiting: int | None = None
    """The number of messages in the SchedulerQueue; None if it is not known."""

    def behind(self, at: int, agent: str | None = None) -> str:
        """Return how far the scheduler is behind with its commands, or the replies of `agent`.

        `at` is the instant in epoch ms. The sentence is empty if no mark that is in date says so.
        """
        keys = [COMMANDS, *([replies_key(agent)] if agent else ())]
        lag = max(QueueView(self.marks.get(key)).lag(at) for key in keys)
        return f"the scheduler is {format_duration(lag)} behind" if lag > PROMPT else ""

    def start_words(self, at: int) -> str:
        """Return where a late Start is at `at` (epoch ms); empty if it does not wait."""
        behind = self.behind(at)
        if not behind and self.waiting == 0:
            return ""
        return "its start waits in the scheduler's queue" + (f"; {behind}" if behind else "")


NOTHING_KNOWN = SchedulerNow()


MOST_WAITING = 1_000
"""So many orders that wait for their turn are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNow:
    """What an order waits for that may not begin yet, by the limit of its workflow."""

    by: str
    """The expression that gives the value by which orders are counted."""
    at_once: Count
    """How many orders with one value may be under way."""
    under_way: Count
    """How many orders with the value of this one are under way."""
    waiting: Count | None
    """How many of them have waited for longer; MOST_WAITING stands for that or more. None if the
    reader may not read that: only an operator may."""

    @property
    def words(self) -> str:
        """What is before the order, in words."""
        limit = f"at most {self.at_once} may be under way"
        if self.waiting is None:
            under_way = counted(self.under_way, "order")
            return (
                f"its turn: {under_way} of the same {self.by} under way, and how many wait before "
                f"it is not known to you; {limit}"
            )
        many = "at least " if self.waiting >= MOST_WAITING else ""
        before = counted(self.under_way + self.waiting, "order")
        verb = "is" if self.under_way + self.waiting == 1 else "are"
        return (
            f"its turn: {many}{before} of the same {self.by} {verb} before it, {self.under_way} "
            f"under way and {self.waiting} waiting; {limit}"
        )


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """One order as it is shown to a person, with masked values masked. Instants are epoch ms."""

    task: Task
    plan: Plan | None
    """Its plan, in which each fan-out item is a step; None if it is not stored."""
    history: Sequence[HistoryRow] = ()
    _: KW_ONLY
    at: int
    """When it was read."""
    holds: Sequence[Hold] = ()
    """The holds in force, if a step is held; `lookup.with_surroundings` adds them in any case."""
    turn: TurnNow | None = None
    """What it waits for that a limit counts; None if it does not wait for its turn."""
    agents: Agents = field(default_factory=dict)
    """How far the agents are behind. This and what follows is added by `with_surroundings`."""
    visited_at: int | None = None
    """When a supervisor last visited the task's shard; None if none ever did."""
    interval: int = MINUTE
    """The time in ms from one pass of the supervisor to the next."""
    scheduler: SchedulerNow = NOTHING_KNOWN
    """What is known of the queues that the scheduler reads."""
    order_stored: bool = True
    """Whether the orders table has the order's row."""

    @property
    def names(self) -> list[str]:
        """The names of the steps, as `step_names` orders them."""
        return step_names(self.task, self.plan)

    @property
    def steps(self) -> "list[StepFacts]":
        """The steps, in the order of `names`."""
        return [*map(self.step, self.names)]

    @property
    def effects(self) -> Effects:
        """What is known of the effects of the steps."""
        return effects_of(self.task, self.plan)

    @property
    def late(self) -> int:
        """The time in ms within which a supervisor that works handles an overdue task.

        Two passes, and one minute because the timer has a resolution of one minute.
        """
        return 2 * self.interval + MINUTE

    @property
    def supervised(self) -> bool:
        """Whether a supervisor visited the task's shard within the last `late` ms."""
        return self.visited_at is not None and self.at - self.visited_at <= self.late

    def step(self, name: str) -> "StepFacts":
        """Return one step."""
        planned = self.plan.steps.get(name) if self.plan else None
        return StepFacts(self, name, self.task.step(name), planned)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is known of one step of an order."""

    order: OrderFacts
    name: str
    record: StepRecord
    step: StepPlan | None
    """None if the plan is not stored, or does not have it."""

    @property
    def agent(self) -> str | None:
        """The agent that it is at, or the first of its plan; None if it has none."""
        return self.record.agent or (self.step.agent if self.step else None)

    @property
    def after(self) -> Sequence[str]:
        """The names of the steps directly before it; none if they are not known."""
        return self.step.after if self.step else ()

    @property
    def is_unblocked(self) -> bool:
        """Whether every step before it is done, or enough of them are, as far as that is known."""
        plan, task = self.order.plan, self.order.task
        return plan is None or self.step is None or is_unblocked(plan, task.step, self.step)

    @property
    def most_attempts(self) -> int | None:
        """How many attempts its operation has; None if nothing limits them, or it is not known."""
        return self.step.attempts_of(self.record.operation) if self.step else None

"""What each unfinished step waits for, the most important wait first. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from roundsman.command_line import REASON, command_line
from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.signals import NO_SIGNAL
from roundsman.model.events import Agents
from roundsman.model.holds import OPERATOR, Hold, hold_words
from roundsman.model.instants import format_duration, second
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.scheduler_queues import COMMANDS, QueueView, replies_key
from roundsman.model.situations import (
    Asleep,
    AwaitsCallback,
    AwaitsSignal,
    Ended,
    UnderWay,
    WithoutAgent,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, StepRecord, Task
from roundsman_console.facts.hold.view import release_command
from roundsman_console.facts.order.documents import StepCase
from roundsman_console.facts.order.step_text import (
    holds_of,
    poll_words,
    reminder_words,
    retry_words,
)
from roundsman_console.facts.order.view import result_command, step_names

CASES: tuple[StepCase, ...] = get_args(StepCase)
"""The values of `StepWait.case`, from the step that is the furthest from continuing to the step
that continues by itself."""


@dataclass(frozen=True, slots=True)
class StepWait:
    """What one step waits for."""

    case: StepCase
    step: str
    agent: str | None
    what: str
    """A phrase that follows the words "it waits for"."""
    evidence: tuple[str, ...] = ()
    next: str | None = None
    """A command that helps; None if nothing needs to be done."""
    overdue_since: int | None = None
    """Since when the step is overdue, in epoch ms, so that a supervisor must handle it; None if it
    is not overdue."""


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

RUNBOOK = "what to do if it lasts: docs/runbook/backlog.md"
"""The evidence that names the page for a scheduler that is behind."""

STATS = "roundsman stats"
"""The command that shows which queue is behind."""


def waits_of(
    task: Task,
    plan: Plan,
    at: int,
    holds: Sequence[Hold],
    agents: Agents,
    scheduler: SchedulerNow = NOTHING_KNOWN,
) -> list[StepWait]:
    """Return the waits of the task's steps at `at` (epoch ms), in the order of CASES."""
    view = _View(task, at, tuple(holds), agents, scheduler)
    found = [
        wait
        for name in step_names(task, plan)
        if (wait := view.wait(name, task.step(name), plan.steps.get(name))) is not None
    ]
    return sorted(found, key=lambda wait: CASES.index(wait.case))


@dataclass(frozen=True, slots=True)
class _View:
    task: Task
    at: int
    holds: tuple[Hold, ...]
    agents: Agents
    scheduler: SchedulerNow

    def wait(self, name: str, record: StepRecord, step: StepPlan | None) -> StepWait | None:
        """Return what the step waits for; None if it is finished or has not begun."""
        situation = record.situation
        if isinstance(situation, UnderWay):
            return self._under_way(name, record, situation, step)
        if isinstance(situation, WithoutAgent | Ended):
            return self._without_agent(name, record, step)
        if record.held_since is not None:
            return self._held(name, record, step)
        if record.late_since is not None:
            started = self._start_waits(name, record, step)
            if started is not None:
                return started
        if record.process_state is ProcessState.UNDOING:
            return self._to_undo(name, record, step)
        return None if record.not_before is None else self._again(name, record, step)

    def _under_way(
        self, name: str, record: StepRecord, attempt: UnderWay, step: StepPlan | None
    ) -> StepWait:
        agent = _agent(record, step)
        evidence = [*self._lag(agent), *self._so_far(record)]
        by = attempt.overdue_at
        if attempt.late_since is not None:
            return self._reply_waits(name, record, step, by)
        if by <= self.at:
            what = f"{self._answer(name, record, step)}, overdue by {format_duration(self.at - by)}"
            return StepWait("overdue", name, agent, what, tuple(evidence), None, by)
        until = f", until {second(by)} (in {format_duration(by - self.at)})"
        if isinstance(attempt, AwaitsCallback):
            what = f"a callback for {name} (agent {agent}){until}"
            what += reminder_words(self.task, record)
            evidence.append("whoever has the token of the callback can answer it")
            return StepWait("callback", name, agent, what, tuple(evidence))
        if self._unread(record, agent):
            what = f"{agent} to read the request of {name}: its queue is behind"
            return StepWait("unread", name, agent, what, tuple(evidence), "roundsman agents")
        sent = (
            f", sent {format_duration(self.at - record.started_at)} ago"
            if record.started_at
            else ""
        )
        case: StepCase = "undoing" if record.operation == UNDO else "at_agent"
        what = f"{self._answer(name, record, step)}{sent}{until}"
        return StepWait(case, name, agent, what, (*evidence, *self._heard(record)))

    def _reply_waits(
        self, name: str, record: StepRecord, step: StepPlan | None, by: int
    ) -> StepWait:
        """Return the wait of a step whose reply may wait in its queue; it is checked at `by`."""
        agent, late_for = _agent(record, step), self.at - (record.late_since or self.at)
        why = self.scheduler.behind(self.at, agent) or "its reply may wait in its queue"
        moves = record.operation == PERFORM and self.task.ending is None
        counted = "nothing is counted" + (", and the order's time moves" if moves else "")
        what = f"{self._answer(name, record, step)}, late for {format_duration(late_for)}: {why}"
        evidence = (*self._lag(agent), *self._so_far(record), RUNBOOK)
        return self._checked_at(
            by, StepWait("reply_waits", name, agent, f"{what}; {counted}", evidence, STATS)
        )

    def _start_waits(self, name: str, record: StepRecord, step: StepPlan | None) -> StepWait | None:
        """Return the wait of a ready step that was not started in time; None if it may not start.

        It may not if its task performs no further step, or its Start does not wait in the queue.
        """
        undoes = record.process_state is ProcessState.UNDOING
        where, by = self.scheduler.start_words(self.at), record.claim_by
        if not where or by is None or (self.task.ending is not None and not undoes):
            return None
        of = f"the undo of {name}" if undoes else name
        what = f"the scheduler to begin {of}: {where}; nothing is counted"
        evidence = (*self._so_far(record), RUNBOOK)
        return self._checked_at(
            by, StepWait("start_waits", name, _agent(record, step), what, evidence, STATS)
        )

    def _checked_at(self, by: int, wait: StepWait) -> StepWait:
        """Return the wait with when the step is checked again, or since when that is overdue."""
        if by <= self.at:
            return replace(wait, overdue_since=by, next=None)
        again = f"; it is checked again at {second(by)} (in {format_duration(by - self.at)})"
        return replace(wait, what=f"{wait.what}{again}")

    def _answer(self, name: str, record: StepRecord, step: StepPlan | None) -> str:
        undoes = record.operation == UNDO
        attempt = f"attempt {record.failure_count + 1}"
        if step is not None:
            attempt += _of(step.attempts_of(record.operation))
        of = f"the undo of {name}" if undoes else name
        return f"{_agent(record, step)}'s answer to {of} ({attempt})"

    def _held(self, name: str, record: StepRecord, step: StepPlan | None) -> StepWait:
        of = f"the undo of {name}" if record.operation == UNDO else name
        since = f"{name} has been held since {second(record.held_since or self.at)}"
        looks = _looks_again(record, self.at)
        of_step = holds_of(self.task, record, step, self.holds)
        found = [hold for hold in of_step if hold.until > self.at]
        found.sort(key=lambda hold: hold.kind != OPERATOR)
        if not found:
            what = f"the next check of {_agent(record, step)}, which takes work again, for {of}"
            if record.not_before is not None and record.not_before <= self.at:
                late = record.not_before
                return StepWait("held", name, _agent(record, step), what, (since,), None, late)
            return StepWait("held", name, _agent(record, step), what, (since, *looks))
        hold = found[0]
        agent, until = hold.agent or _agent(record, step), f"until {second(hold.until)}"
        what = f"{agent}, which {hold_words(hold)}, {until}, for {of}"
        if not hold.agent:
            what = f"the end of a hold, for {of}: {hold.target} {hold_words(hold)}, {until}"
        others = (f"{one.target} {hold_words(one)}" for one in found[1:])
        evidence = (
            since,
            *looks,
            *others,
            "no attempt is counted, and its complete-by moves with the wait",
        )
        if hold.kind == OPERATOR:
            return StepWait("held", name, agent, what, evidence, release_command(hold))
        return StepWait("circuit_open", name, agent, what, evidence, "roundsman agents")

    def _again(self, name: str, record: StepRecord, step: StepPlan | None) -> StepWait:
        agent, not_before = _agent(record, step), record.not_before or self.at
        most = _of(step.attempts) if step else ""
        polls = record.polling is not None and not record.failure_count
        what = f"attempt {record.failure_count + 1}{most} of {name}"
        if polls:
            what = f"the next poll of {name} by {agent}"
        evidence = tuple(self._so_far(record))
        if not_before <= self.at:
            what = f"{what}, which was due {format_duration(self.at - not_before)} ago"
            return StepWait("retry_late", name, agent, what, evidence, None, not_before)
        what = f"{what}, at {second(not_before)} (in {format_duration(not_before - self.at)})"
        run = command_line("run", self.task.task_id, options=REASON)
        case: StepCase = "polled" if polls else "retry"
        return StepWait(case, name, agent, what, evidence, run)

    def _without_agent(
        self, name: str, record: StepRecord, step: StepPlan | None
    ) -> StepWait | None:
        """Return the wait of a sleep, for a signal, or for a result that was left out; None if its
        task ends, which does not wait for it, or if the step is over."""
        wait = record.situation
        if self.task.ending is not None:
            return None
        if not isinstance(wait, WithoutAgent):
            return self._awaits_result(name, record)
        if wait.until <= self.at:
            late = format_duration(self.at - wait.until)
            which = "sleep" if isinstance(wait, Asleep) else "wait"
            what = f"a supervisor to end the {which} {name}, which was over {late} ago"
            return StepWait("retry_late", name, None, what, (), None, wait.until)
        if isinstance(wait, Asleep):
            return self._asleep(name, wait)
        return self._awaits_signal(name, record, wait, step)

    def _awaits_signal(
        self, name: str, record: StepRecord, wait: AwaitsSignal, step: StepPlan | None
    ) -> StepWait:
        lasts = format_duration(wait.until - self.at)
        signal = step.signal if step is not None and step.signal is not None else name
        what = f"the signal {signal}, for {name}, until {second(wait.until)} (in {lasts})"
        evidence = (
            *(() if record.error is None else (record.error.message,)),
            f"it has waited since {second(wait.since)}; without a signal, it fails then by "
            f"{NO_SIGNAL}; resolved as done, it ends now",
        )
        command = command_line("signal", self.task.task_id, signal)
        return StepWait("awaits_signal", name, None, what, evidence, command)

    def _awaits_result(self, name: str, record: StepRecord) -> StepWait | None:
        """Return the wait for a result that was left out; None if the step is over."""
        left_out = record.left_out
        if left_out is None or not record.awaits_result:
            return None
        evidence = (
            f"{name} is done; its result was left out: {left_out.why}",
            "no time of the order passes until its deadline; it is archived then, and not undone",
        )
        command = result_command(self.task, name)
        return StepWait("awaits_result", name, None, f"the result of {name}", evidence, command)

    def _asleep(self, name: str, asleep: Asleep) -> StepWait:
        lasts = format_duration(asleep.until - self.at)
        what = f"the end of the sleep {name}, at {second(asleep.until)} (in {lasts})"
        evidence = (
            f"it has slept since {second(asleep.since)}; no hold stops it, and `run` does not end "
            "it: resolved as done, it ends now",
        )
        command = command_line("resolve", self.task.task_id, name, options=("--did", *REASON))
        return StepWait("asleep", name, None, what, evidence, command)

    def _to_undo(self, name: str, record: StepRecord, step: StepPlan | None) -> StepWait:
        agent, not_before = _agent(record, step), record.not_before
        evidence = tuple(self._so_far(record))
        if not_before is not None and not_before > self.at:
            until = f"at {second(not_before)} (in {format_duration(not_before - self.at)})"
            if record.failure_count:
                what = f"attempt {record.failure_count + 1} of the undo of {name}, {until}"
            else:
                why = "when no request of it can take effect any more"
                what = f"the undo of {name}, {until}, {why}"
            return StepWait("undo_waits", name, agent, what, evidence)
        what = f"the undo of {name}, after the undo of the steps that followed it"
        return StepWait("undo_waits", name, agent, what, evidence)

    def _unread(self, record: StepRecord, agent: str) -> bool:
        """Whether the request is newer than the agent's read mark, so that it was not read yet."""
        view = self.agents.get(f"{agent}/{self.task.priority}")
        if view is None or view.read_up_to is None or record.started_at is None:
            return False
        return view.lag > 0 and record.started_at > view.read_up_to

    def _lag(self, agent: str) -> Iterator[str]:
        view = self.agents.get(f"{agent}/{self.task.priority}")
        if view is not None and view.lag > 0:
            yield f"{agent} now reads requests that were sent {format_duration(view.lag)} ago"

    def _so_far(self, record: StepRecord) -> Iterator[str]:
        if record.error is not None:
            yield f"the last attempt failed: {record.error.type}: {record.error.message}"
        yield from retry_words(self.task, record)
        yield from poll_words(self.task, record, self.at)

    def _heard(self, record: StepRecord) -> Iterator[str]:
        if record.heard_at is not None:
            yield f"last heartbeat {format_duration(max(0, self.at - record.heard_at))} ago"


def _agent(record: StepRecord, step: StepPlan | None) -> str:
    return record.agent or (step.agent if step else "its agent")


def _of(most: int | None) -> str:
    return "" if most is None else f" of {most}"


def _looks_again(record: StepRecord, at: int) -> Iterator[str]:
    if record.not_before is not None and record.not_before > at:
        yield f"the next check is at {second(record.not_before)}"

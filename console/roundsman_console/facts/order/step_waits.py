"""What each unfinished step waits for, the most important wait first. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from roundsman.command_line import REASON, command_line
from roundsman.engine.signals import NO_SIGNAL
from roundsman.model.events import AgentView
from roundsman.model.holds import OPERATOR, hold_words
from roundsman.model.instants import format_duration, second
from roundsman.model.order_limit import waits_for_turn
from roundsman.model.situations import (
    Asleep,
    AwaitsCallback,
    Ended,
    UnderWay,
    WithoutAgent,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO
from roundsman_console.facts.hold.view import release_command
from roundsman_console.facts.order.next_command import result_command
from roundsman_console.facts.order.not_needed import not_needed_words
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_text import (
    error_words,
    heard_words,
    holds_of,
    poll_words,
    reminder_words,
    retry_words,
)

StepCase: TypeAlias = Literal[
    "overdue",
    "start_waits",
    "reply_waits",
    "held",
    "circuit_open",
    "awaits_turn",
    "tenant_rate",
    "callback",
    "unread",
    "at_agent",
    "undoing",
    "retry_late",
    "retry",
    "polled",
    "asleep",
    "awaits_result",
    "awaits_signal",
    "undo_waits",
]
"""What a step waits for, from the step that is the furthest from continuing to the step that
continues by itself."""

CASES: tuple[StepCase, ...] = get_args(StepCase)


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


RUNBOOK = "what to do if it lasts: docs/runbook/backlog.md"
"""The evidence that names the page for a scheduler that is behind."""

STATS = "roundsman stats"
"""The command that shows which queue is behind."""


def waits_of(facts: OrderFacts) -> list[StepWait]:
    """Return the waits of the task's steps, in the order of CASES."""
    found = [wait for one in facts.steps if (wait := _Step(one).wait()) is not None]
    return sorted(found, key=lambda wait: CASES.index(wait.case))


class _Step:
    """One step, and what it waits for."""

    def __init__(self, one: StepFacts) -> None:
        self.facts = one
        self.name, self.record, self.step = one.name, one.record, one.step
        self.task, self.at = one.order.task, one.order.at
        self.agent = "its agent" if one.agent is None else one.agent
        undoes = one.record.operation == UNDO
        self.of = f"the undo of {one.name}" if undoes else one.name
        """What its agent does."""

    def wait(self) -> StepWait | None:
        """Return what the step waits for; None if it is finished or has not begun."""
        record = self.record
        if isinstance(record.situation, UnderWay):
            return self._under_way(record.situation)
        if isinstance(record.situation, WithoutAgent | Ended):
            return self._without_agent()
        if record.held_since is not None:
            return self._held()
        if record.late_since is not None:
            started = self._start_waits()
            if started is not None:
                return started
        if record.process_state is ProcessState.UNDOING:
            return self._to_undo()
        return None if record.not_before is None else self._again(record.not_before)

    def _wait(
        self,
        case: StepCase,
        what: str,
        evidence: Iterable[str] = (),
        command: str | None = None,
        overdue_since: int | None = None,
    ) -> StepWait:
        return StepWait(case, self.name, self.agent, what, tuple(evidence), command, overdue_since)

    def _until(self, instant: int) -> str:
        """An instant in the future, with the time until then."""
        return f"{second(instant)} (in {format_duration(instant - self.at)})"

    def _under_way(self, attempt: UnderWay) -> StepWait:
        evidence = [*self._not_needed(), *self._lag(), *self._so_far()]
        by = attempt.overdue_at
        if attempt.late_since is not None:
            return self._reply_waits(attempt.late_since, by)
        if by <= self.at:
            what = f"{self._answer()}, overdue by {format_duration(self.at - by)}"
            return self._wait("overdue", what, evidence, None, by)
        until = f", until {self._until(by)}"
        if isinstance(attempt, AwaitsCallback):
            what = f"a callback for {self.name} (agent {self.agent}){until}"
            what += reminder_words(self.facts)
            evidence.append("whoever has the token of the callback can answer it")
            if self._goes_on():
                evidence.append("if nobody does, the step goes on without the answer")
            return self._wait("callback", what, evidence)
        if self._unread():
            what = f"{self.agent} to read the request of {self.name}: its queue is behind"
            return self._wait("unread", what, evidence, "roundsman agents")
        started = self.record.started_at
        sent = f", sent {format_duration(self.at - started)} ago" if started else ""
        if self.record.heard_at is not None:
            evidence.append(heard_words(self.facts, self.record.heard_at))
        case: StepCase = "undoing" if self.record.operation == UNDO else "at_agent"
        return self._wait(case, f"{self._answer()}{sent}{until}", evidence)

    def _reply_waits(self, late_since: int, by: int) -> StepWait:
        """Return the wait of a step whose reply may wait in its queue; it is checked at `by`."""
        scheduler = self.facts.order.scheduler
        why = scheduler.behind(self.at, self.agent) or "its reply may wait in its queue"
        moves = self.record.operation == PERFORM and self.task.ending is None
        counted = "nothing is counted" + (", and the order's time moves" if moves else "")
        what = f"{self._answer()}, late for {format_duration(self.at - late_since)}: {why}"
        evidence = (*self._not_needed(), *self._lag(), *self._so_far(), RUNBOOK)
        return self._checked_at(by, "reply_waits", f"{what}; {counted}", evidence)

    def _start_waits(self) -> StepWait | None:
        """Return the wait of a ready step that was not started in time; None if it may not start.

        It may not if its task performs no further step, or its Start does not wait in the queue.
        """
        undoes = self.record.process_state is ProcessState.UNDOING
        where, by = self.facts.order.scheduler.start_words(self.at), self.record.claim_by
        if not where or by is None or not (undoes or self.task.performs(self.name)):
            return None
        of = f"the undo of {self.name}" if undoes else self.name
        what = f"the scheduler to begin {of}: {where}; nothing is counted"
        return self._checked_at(by, "start_waits", what, (*self._so_far(), RUNBOOK))

    def _checked_at(self, by: int, case: StepCase, what: str, evidence: Iterable[str]) -> StepWait:
        """Return the wait with when the step is checked again, or since when that is overdue."""
        if by <= self.at:
            return self._wait(case, what, evidence, None, by)
        return self._wait(
            case, f"{what}; it is checked again at {self._until(by)}", evidence, STATS
        )

    def _answer(self) -> str:
        most = _of(self.facts.most_attempts)
        return f"{self.agent}'s answer to {self.of} (attempt {self.record.failure_count + 1}{most})"

    def _held(self) -> StepWait:
        if waits_for_turn(self.record):
            return self._turn()
        if self.record.at_rate and self.task.tenant is not None:
            return self._rate(self.task.tenant)
        record, not_before = self.record, self.record.not_before
        since = f"{self.name} has been held since {second(record.held_since or self.at)}"
        looks = []
        if not_before is not None and not_before > self.at:
            looks = [f"the next check is at {second(not_before)}"]
        of_step = holds_of(self.task, record, self.step, self.facts.order.holds)
        found = [hold for hold in of_step if hold.until > self.at]
        found.sort(key=lambda hold: hold.kind != OPERATOR)
        if not found:
            what = f"the next check of {self.agent}, which takes work again, for {self.of}"
            late = None if looks else not_before
            return self._wait("held", what, (since, *looks), None, late)
        hold = found[0]
        agent, until = hold.agent or self.agent, f"until {second(hold.until)}"
        what = f"{agent}, which {hold_words(hold)}, {until}, for {self.of}"
        if not hold.agent:
            what = f"the end of a hold, for {self.of}: {hold.target} {hold_words(hold)}, {until}"
        evidence = (
            since,
            *looks,
            *(f"{one.target} {hold_words(one)}" for one in found[1:]),
            "no attempt is counted, and its complete-by moves with the wait",
        )
        operator = hold.kind == OPERATOR
        case: StepCase = "held" if operator else "circuit_open"
        command = release_command(hold) if operator else "roundsman agents"
        return replace(self._wait(case, what, evidence, command), agent=agent)

    def _turn(self) -> StepWait:
        turn = self.facts.order.turn
        what = "its turn, by the limit of its workflow" if turn is None else turn.words
        evidence = (
            f"it has waited since {second(self.record.held_since or self.at)}, and its complete-by "
            "moves with the wait",
            "it begins when it is its turn; to let it begin before, run the command below",
        )
        run = command_line("run", self.task.task_id, options=("--past-holds", *REASON))
        return replace(self._wait("awaits_turn", what, evidence, run), agent=None)

    def _rate(self, tenant: str) -> StepWait:
        record, evidence = self.record, list[str]()
        if record.error is not None:
            evidence.append(record.error.message)
        evidence.append("no attempt is counted, and its complete-by moves with the wait")
        what = f"the rate of tenant {tenant} at {self.agent}, for {self.of}"
        if record.not_before is not None and record.not_before > self.at:
            what += f"; it comes again at {self._until(record.not_before)}"
        options = ("--for", "1h", *REASON)
        lift = command_line("lift", self.agent, tenant, options=options)
        return self._wait("tenant_rate", what, evidence, lift)

    def _again(self, not_before: int) -> StepWait:
        polls = self.record.polling is not None and not self.record.failure_count
        most = _of(self.step.attempts) if self.step else ""
        what = f"attempt {self.record.failure_count + 1}{most} of {self.name}"
        if polls:
            what = f"the next poll of {self.name} by {self.agent}"
        if not_before <= self.at:
            what = f"{what}, which was due {format_duration(self.at - not_before)} ago"
            return self._wait("retry_late", what, self._so_far(), None, not_before)
        run = command_line("run", self.task.task_id, options=REASON)
        case: StepCase = "polled" if polls else "retry"
        return self._wait(case, f"{what}, at {self._until(not_before)}", self._so_far(), run)

    def _without_agent(self) -> StepWait | None:
        """Return the wait of a sleep, for a signal, or for a result that was left out; None if its
        task ends, which does not wait for it, or if the step is over."""
        wait = self.record.situation
        if self.task.ending is not None:
            return None
        found = self._no_agent(wait) if isinstance(wait, WithoutAgent) else self._awaits_result()
        return found and replace(found, agent=None)

    def _no_agent(self, wait: WithoutAgent) -> StepWait:
        if wait.until <= self.at:
            late = format_duration(self.at - wait.until)
            which = "sleep" if isinstance(wait, Asleep) else "wait"
            what = f"a supervisor to end the {which} {self.name}, which was over {late} ago"
            return self._wait("retry_late", what, (), None, wait.until)
        return self._asleep(wait) if isinstance(wait, Asleep) else self._awaits_signal(wait)

    def _awaits_signal(self, wait: WithoutAgent) -> StepWait:
        step, error = self.step, self.record.error
        signal = step.signal if step is not None and step.signal is not None else self.name
        what = f"the signal {signal}, for {self.name}, until {self._until(wait.until)}"
        evidence = (
            *(() if error is None else (error.message,)),
            f"it has waited since {second(wait.since)}; without a signal, it {self._then()}; "
            "resolved as done, it ends now",
        )
        command = command_line("signal", self.task.task_id, signal)
        return self._wait("awaits_signal", what, evidence, command)

    def _goes_on(self) -> bool:
        return self.step is not None and self.step.otherwise is not None

    def _then(self) -> str:
        """What the step does if no signal comes."""
        return "goes on then" if self._goes_on() else f"fails then by {NO_SIGNAL}"

    def _awaits_result(self) -> StepWait | None:
        """Return the wait for a result that was left out; None if the step is over."""
        left_out = self.record.left_out
        if left_out is None or not self.record.awaits_result:
            return None
        evidence = (
            f"{self.name} is done; its result was left out: {left_out.why}",
            "no time of the order passes until its deadline; it is archived then, and not undone",
        )
        command = result_command(self.task, self.name)
        return self._wait("awaits_result", f"the result of {self.name}", evidence, command)

    def _asleep(self, asleep: Asleep) -> StepWait:
        what = f"the end of the sleep {self.name}, at {self._until(asleep.until)}"
        evidence = (
            f"it has slept since {second(asleep.since)}; no hold stops it, and `run` does not end "
            "it: resolved as done, it ends now",
        )
        command = command_line("resolve", self.task.task_id, self.name, options=("--did", *REASON))
        return self._wait("asleep", what, evidence, command)

    def _to_undo(self) -> StepWait:
        not_before, failed = self.record.not_before, self.record.failure_count
        what, not_needed = f"the undo of {self.name}", [*self._not_needed()]
        if not_before is None or not_before <= self.at:
            rest = "" if not_needed else ", after the undo of the steps that followed it"
            what = f"{what}{rest}"
        elif failed:
            what = f"attempt {failed + 1} of {what}, at {self._until(not_before)}"
        else:
            why = "when no request of it can take effect any more"
            what = f"{what}, at {self._until(not_before)}, {why}"
        return self._wait("undo_waits", what, (*not_needed, *self._so_far()))

    def _not_needed(self) -> Iterator[str]:
        """Yield that the step is not needed, if it is so: the order waits for its undo alone."""
        if words := not_needed_words(self.facts):
            yield f"{self.name} is {words}"

    def _unread(self) -> bool:
        """Whether the request is newer than the agent's read mark, so that it was not read yet."""
        view, started = self._queue, self.record.started_at
        if view is None or view.read_up_to is None or started is None:
            return False
        return view.lag > 0 and started > view.read_up_to

    def _lag(self) -> Iterator[str]:
        view = self._queue
        if view is not None and view.lag > 0:
            yield f"{self.agent} now reads requests that were sent {format_duration(view.lag)} ago"

    @property
    def _queue(self) -> AgentView | None:
        return self.facts.order.agents.get(f"{self.agent}/{self.task.priority}")

    def _so_far(self) -> Iterator[str]:
        error = self.record.error
        if error is not None:
            yield f"the last attempt failed: {error_words(error.type, error.message)}"
        yield from retry_words(self.facts)
        yield from poll_words(self.facts)


def _of(most: int | None) -> str:
    return "" if most is None else f" of {most}"

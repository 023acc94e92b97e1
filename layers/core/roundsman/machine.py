"""The pure machine: what becomes of a task when something happens to it.

No clock, no randomness, no I/O: all of that comes in as arguments. A state changes only through
`roundsman.transitions`; this file says which of its events an event amounts to, and what follows.
A task that fails is *ending*: it claims nothing new, retries nothing, goes on taking replies, and
ends once nothing is under way.
"""

from roundsman.backoff import retry_delay
from roundsman.conditions import holds
from roundsman.draft import Draft
from roundsman.errors import TryAgain
from roundsman.events import (
    Agents,
    AgentView,
    Claimant,
    Decision,
    Event,
    Inspect,
    InspectAt,
    Outcome,
    Replied,
    SendRequest,
    Start,
    StartTask,
)
from roundsman.plan import Plan, StepPlan, StrategyPlan, UndoPlan, WaitPlan
from roundsman.states import DONE, ProcessState, TaskState
from roundsman.task import StepError, Task, idempotency_key
from roundsman.transitions import MayBecome, Stay, StepEvent, TaskEvent, task_transition
from roundsman.values import Json, clock_time, size_in_bytes, spoken

RESULTS_LIMIT = 200 * 1024
"""Bytes of all results of a task: an item holds 400 KB, and a request carries them all."""

NO_AGENTS: Agents = {}


def decide(
    plan: Plan | None,
    task: Task,
    event: Event,
    now: int,
    *,
    order: Json,
    agents: Agents = NO_AGENTS,
    jitter: float,
) -> Decision:
    """What becomes of `task` when `event` happens at `now` (epoch ms).

    `plan` is the plan that the task names, None where it is not stored. `order` is the order
    row's JSON, read only where a step has a `when`. `jitter` is in [0, 1). The decision's task is
    `task` itself where nothing changed; otherwise its version is one higher.

    Raises NoTransition for a defect, and TryAgain for a reply that needs a plan that is missing.
    """
    kind = TaskEvent(type(event).__name__)
    taken = task_transition(task.state, kind)
    draft = Draft(task, now)
    if isinstance(taken, Stay):
        return draft.unchanged(taken.why)
    assert isinstance(taken, MayBecome)  # noqa: S101 - the only other kind, for the reader
    if plan is None:
        _without_plan(draft, event)
    else:
        mind = _Mind(plan, draft, order, agents, jitter)
        match event:
            case Start():
                mind.start(event)
            case Replied():
                mind.replied(event)
            case Inspect():
                mind.inspect()
    return draft.decision(plan, kind)


def _without_plan(draft: Draft, event: Event) -> None:
    if isinstance(event, Replied):
        raise TryAgain(f"plan {draft.task.plan} is not stored; the reply waits for it")
    if draft.ending is None:
        why = f"its plan {draft.task.plan[:12]} is not stored"
        draft.record("failed", None, None, why)
        draft.end(TaskState.ARCHIVED, why)
    for name, record in list(draft.steps.items()):
        if record.process_state is ProcessState.PROCESSING and _passed(
            record.complete_by, draft.now
        ):
            error = StepError("Overdue", "no answer in time, and the plan is not stored")
            draft.fail(name, StepEvent.EXHAUSTED, error)


def _passed(instant: int | None, now: int) -> bool:
    return instant is not None and instant <= now


class _Mind:
    """One decision being made: the plan, what is known of the world, and the draft it changes."""

    def __init__(
        self, plan: Plan, draft: Draft, order: Json, agents: Agents, jitter: float
    ) -> None:
        self.plan = plan
        self.draft = draft
        self.order = order
        self.agents = agents
        self.jitter = jitter
        self.now = draft.now

    # --- Start ---------------------------------------------------------------------------

    def start(self, event: Start) -> None:
        if self.draft.waits_for_its_time():
            self.draft.note(f"starts at {clock_time(self.draft.task.start_at)}")
            return
        self._end_if_overdue()
        self._send_own_claims_again(event.claimant)
        self._claim_ready(event.claimant)

    def _claim_ready(self, claimant: Claimant) -> None:
        """Claim all that can start; a skipped step may let others start, so look again.

        A condition that fails ends the task, and what was not claimed before it stays unclaimed.
        """
        while (ready := self._ready()) and not self.draft.ending:
            for step in ready:
                if not self.draft.ending:
                    self._start_step(step, claimant)

    def _ready(self) -> list[StepPlan]:
        return [step for step in self.plan.steps.values() if self._is_ready(step)]

    def _is_ready(self, step: StepPlan) -> bool:
        record = self.draft.step(step.name)
        if record.process_state is not ProcessState.PENDING:
            return False
        if record.not_before is not None and record.not_before > self.now:
            return False
        return all(self.draft.step(name).process_state in DONE for name in step.after)

    def _start_step(self, step: StepPlan, claimant: Claimant) -> None:
        untouched = step.name not in self.draft.steps
        if untouched and step.when is not None and not self._condition(step, step.when):
            return
        self._claim(step, claimant)

    def _condition(self, step: StepPlan, when: str) -> bool:
        """Evaluate `when` once, as the step first becomes ready; the record keeps the outcome."""
        try:
            if holds(when, self.order, self.draft.results()):
                return True
        except ValueError as problem:
            error = StepError("ConditionFailed", str(problem))
            self._give_up(step, StepEvent.CONDITION_FAILED, error, f"{step.name}: {problem}")
            return False
        self.draft.move(step.name, StepEvent.CONDITION_FALSE, finished_at=self.now)
        self.draft.note(f"{step.name}: skipped, {when} is false")
        return False

    def _claim(self, step: StepPlan, claimant: Claimant) -> None:
        """The request's right to act: its agent's backlog, then the step's own time."""
        attempt = self.draft.step(step.name).failure_count + 1
        complete_by = self.now + self._agent(step).lag + step.complete_within
        self.draft.move(
            step.name,
            StepEvent.CLAIMED,
            locked_by=claimant.token(attempt),
            complete_by=min(complete_by, self.draft.task.complete_by),
            started_at=self.now,
            not_before=None,
        )
        self.draft.command(SendRequest(step.name))
        self.draft.note(f"{step.name}: attempt {attempt} of {step.attempts} claimed")

    def _send_own_claims_again(self, claimant: Claimant) -> None:
        """A redelivered message may have died between its claim and its send."""
        for name, record in self.draft.steps.items():
            if record.process_state is ProcessState.PROCESSING and claimant.made(record.locked_by):
                self.draft.command(SendRequest(name))
                self.draft.note(f"{name}: its request is sent again")

    def _agent(self, step: StepPlan) -> AgentView:
        agent = self.draft.step(step.name).agent or step.agent
        return self.agents.get(f"{agent}/{self.draft.task.priority}", AgentView())

    # --- Replied -------------------------------------------------------------------------

    def replied(self, event: Replied) -> None:
        step = self.plan.steps.get(event.step)
        if step is None or event.operation != "perform":
            self.draft.note(f"{event.step}: the plan has no such step to {event.operation}")
            return
        record = self.draft.step(step.name)
        key = idempotency_key(self.draft.task.task_id, step.name, "perform", record)
        if event.key != key:
            self.draft.note(f"{step.name}: reply under another key ignored")
            return
        current = record.process_state is ProcessState.PROCESSING and record.locked_by == event.lock
        if event.outcome is Outcome.SUCCEEDED and (current or self._still_open(step)):
            self._succeeded(step, event.result)
        elif not current:
            why = self.draft.stale(step.name)
            self.draft.note(f"{step.name}: {event.outcome} reply ignored: {why}")
        else:
            self._failed(step, event)
        self._end_if_overdue()
        self._send_own_claims_again(event.claimant)
        self._claim_ready(event.claimant)

    def _still_open(self, step: StepPlan) -> bool:
        """Whether a success of an earlier attempt is still welcome: its effect is the same."""
        record = self.draft.step(step.name)
        attempted = record.started_at is not None
        still = record.process_state in (ProcessState.PENDING, ProcessState.PROCESSING)
        return attempted and still and not self.draft.ending

    def _succeeded(self, step: StepPlan, result: Json) -> None:
        problem = self._too_large(step, result)
        if problem is not None:
            error = StepError("ResultTooLarge", problem)
            self._give_up(step, StepEvent.REFUSED, error, f"{step.name}: {problem}")
            return
        self.draft.move(
            step.name,
            StepEvent.SUCCEEDED,
            finished_at=self.now,
            not_before=None,
            result=result,
            error=None,
        )
        self.draft.note(f"{step.name}: processed")

    def _too_large(self, step: StepPlan, result: Json) -> str | None:
        size = size_in_bytes(result)
        if size > step.result_limit:
            return f"the result has {size} bytes; the plan allows {step.result_limit}"
        total = size + size_in_bytes(self.draft.results())
        if total > RESULTS_LIMIT:
            return f"the task's results would have {total} bytes; {RESULTS_LIMIT} fit"
        return None

    def _failed(self, step: StepPlan, event: Replied) -> None:
        error = (event.error or StepError("Unknown", "the agent gave no reason")).cut()
        said = f"{error.type}: {error.message}" if error.message else error.type
        if event.outcome is Outcome.PERMANENT or error.type in step.retry.not_on:
            self._give_up(step, StepEvent.REFUSED, error, f"{step.name}: failed for good: {said}")
            return
        self._end_if_overdue()  # first, since an ending task retries nothing
        count = self.draft.step(step.name).failure_count + 1
        tried = f"{step.name}: attempt {count} of {step.attempts} failed: {said}"
        if self.draft.ending or count >= step.retry.max_attempts:
            self._exhausted(step, error, tried)
            return
        wait = event.retry_after
        if wait is None:
            wait = retry_delay(step.retry, count, self.jitter)
        again = self._try_again_after(wait, step, StepEvent.FAILED, error)
        self.draft.record("failed", step.name, count, f"{tried}; {again}")

    # --- Inspect -------------------------------------------------------------------------

    def inspect(self) -> None:
        if self.draft.waits_for_its_time():
            self.draft.note(f"starts at {clock_time(self.draft.task.start_at)}")
            return
        self._end_if_overdue()
        for step in self.plan.steps.values():
            record = self.draft.steps.get(step.name)
            if record is None:
                continue
            if record.process_state is ProcessState.PROCESSING:
                if _passed(record.complete_by, self.now):
                    self._overdue(step, self.now - (record.complete_by or 0))
            elif record.process_state is ProcessState.PENDING and not self.draft.ending:
                self._nudge(step)
        if not self.draft.ending and self._ready():
            self.draft.command(StartTask())

    def _overdue(self, step: StepPlan, by: int) -> None:
        record = self.draft.step(step.name)
        read_up_to = self._agent(step).read_up_to
        if (
            not self.draft.ending
            and read_up_to is not None
            and record.started_at is not None
            and record.started_at > read_up_to
        ):
            self.draft.requeue(step.name, StepEvent.UNREAD)
            self.draft.record(
                "requeued",
                step.name,
                record.failure_count + 1,
                f"{step.name}: its request was never read; sent again, no attempt counted",
            )
            return
        count = record.failure_count + 1
        tried = f"{step.name}: attempt {count} of {step.attempts} overdue by {spoken(by)}"
        error = StepError("Overdue", f"no answer in time; {spoken(by)} late when seen")
        if self.draft.ending or count >= step.retry.max_attempts:
            self._exhausted(step, error, tried)
            return
        self.draft.requeue(step.name, StepEvent.OVERDUE, failure_count=count, error=error)
        at = clock_time(self.now)
        self.draft.record("requeued", step.name, count, f"{tried}; retried at {at}")

    def _nudge(self, step: StepPlan) -> None:
        """A step that could have been started: its wait is over, or its Start was lost."""
        record = self.draft.step(step.name)
        if record.not_before is not None:
            if _passed(record.not_before, self.now):
                self.draft.requeue(step.name, StepEvent.RETRY_DUE)
                self.draft.note(f"{step.name}: its next attempt is due")
        elif _passed(record.complete_by, self.now):
            self.draft.requeue(step.name, StepEvent.UNCLAIMED)
            self.draft.note(f"{step.name}: was not started in time; started again")

    # --- Failure -------------------------------------------------------------------------

    def _exhausted(self, step: StepPlan, error: StepError, tried: str) -> None:
        """No attempt is left: wait if the plan says so, else give the step up."""
        record = self.draft.step(step.name)
        wait = step.on_failure
        waited = record.failure_count + 1 - step.retry.max_attempts
        if isinstance(wait, WaitPlan) and waited < wait.times and not self.draft.ending:
            again = self._try_again_after(wait.delay, step, StepEvent.WAITS_ON, error)
            count = record.failure_count + 1
            self.draft.record("waits", step.name, count, f"{tried}; waits; {again}")
            return
        self._give_up(step, StepEvent.EXHAUSTED, error, tried)

    def _try_again_after(
        self, wait: int, step: StepPlan, event: StepEvent, error: StepError
    ) -> str:
        """Make the step wait, and say until when; a wait beyond the task's end is cut to it."""
        at = min(self.now + wait, self.draft.task.complete_by)
        count = self.draft.step(step.name).failure_count + 1
        self.draft.move(
            step.name,
            event,
            locked_by=None,
            complete_by=self.draft.start_by(at),
            not_before=at,
            failure_count=count,
            error=error,
        )
        self.draft.command(InspectAt(at))
        if at < self.now + wait:
            return f"no attempt fits before the task must be complete at {clock_time(at)}"
        return f"retried at {clock_time(at)}"

    def _give_up(self, step: StepPlan, event: StepEvent, error: StepError, why: str) -> None:
        """The step failed for good: the task ends as the step's strategy says."""
        record = self.draft.step(step.name)
        attempt = record.failure_count + 1 if record.started_at is not None else None
        self.draft.fail(step.name, event, error)
        why = self._with_strategy(why, step.on_failure)
        self.draft.record("failed", step.name, attempt, why)
        self.draft.end(TaskState.ARCHIVED, why, step.name)

    def _end_if_overdue(self) -> None:
        task = self.draft.task
        if self.draft.ending or task.complete_by > self.now or self._all_done():
            return
        late = spoken(self.now - task.complete_by)
        why = f"the task was not complete by {clock_time(task.complete_by)} ({late} ago)"
        why = self._with_strategy(why, self.plan.on_failure)
        self.draft.record("failed", None, None, why)
        self.draft.end(TaskState.ARCHIVED, why)

    def _with_strategy(self, why: str, strategy: StrategyPlan) -> str:
        final = strategy.then if isinstance(strategy, WaitPlan) else strategy
        point = self.plan.point_of_no_return
        if point is not None and self.draft.step(point).process_state is ProcessState.PROCESSED:
            return why
        return f"{why}; needs undo" if isinstance(final, UndoPlan) else why

    def _all_done(self) -> bool:
        return all(self.draft.step(n).process_state in DONE for n in self.plan.steps)

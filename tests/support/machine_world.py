"""Small plans, and a world that applies events to one task as the shell would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import TypedDict, Unpack

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import (
    AnyOf,
    Compensation,
    ErrorPolicy,
    Limit,
    Retry,
    Step,
    Strategy,
    Workflow,
)
from roundsman.engine.due import without_owed
from roundsman.engine.machine import decide
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.engine.requests import request_for
from roundsman.engine.transitions import TaskEvent
from roundsman.model.corrections import Change
from roundsman.model.events import (
    Agents,
    AgentView,
    Cancel,
    Claimant,
    CommandSource,
    Decision,
    Erase,
    Event,
    Extend,
    HoldView,
    Inspect,
    Move,
    Outcome,
    Replied,
    Resolve,
    Resubmit,
    RunNow,
    SendRequest,
    Signalled,
    Start,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.order_limit import Turn
from roundsman.model.priority import Priority
from roundsman.model.scheduler_queues import NOTHING_KNOWN, SchedulerQueues
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    EarlyEnd,
    Effect,
    StepError,
    StepRecord,
    StepToAdd,
    Task,
    idempotency_key,
)
from roundsman.wire.messages import AgentRequest
from tests.support.machine_checks import OPEN, check
from tests.support.steps import stored_step

T0 = 1_800_000_000_000
"""When every story begins: 2027-01-15T08:00:00Z."""

REPLY_TO = "https://queue.example/replies"
PLAIN = ProcessingOptions(reply_to=REPLY_TO)
"""What an application asks for, unless a story says otherwise."""


class StepOptions(TypedDict, total=False):
    agent: str
    agents: tuple[str, ...]
    heartbeat_within: timedelta | None
    complete_within: timedelta
    retry: Retry
    compensation: Compensation | None
    on_failure: Strategy | None
    when: str | None
    result_limit: int
    for_each: str | None
    tolerate: float
    reads: tuple[str, ...] | None
    next_agent_on: tuple[str, ...]
    on_error: Mapping[str, ErrorPolicy]
    key_lifetime: timedelta | None
    probe_outlives_key: bool
    otherwise: object
    enough: int | None
    keep: bool


def step(name: str, *after: Step | str | AnyOf, **options: Unpack[StepOptions]) -> Step:
    """A step of 30 s and three attempts at the agent `worker`, by default; after steps or AnyOf."""
    enough = [one for one in after if isinstance(one, AnyOf)]
    plain = Step(
        name=name,
        agent="worker",
        complete_within=timedelta(seconds=30),
        after=enough[0] if enough else tuple(one for one in after if not isinstance(one, AnyOf)),
        retry=Retry(max_attempts=3),
    )
    if "agents" in options:
        options.setdefault("agent", "")
    return replace(plain, **options)


class AskedOptions(TypedDict, total=False):
    reason: str
    seen_version: int | None


class CorrectionOptions(TypedDict, total=False):
    again: bool
    used: bool
    not_done: tuple[str, ...]


class WorkflowOptions(TypedDict, total=False):
    complete_within: timedelta
    on_failure: Strategy
    retain_for: timedelta
    priority: Priority
    point_of_no_return: Step | None
    masked: tuple[str, ...]
    deadline: timedelta
    limit: Limit
    may_add: tuple[Step, ...]
    most_added: int
    may_add_after_no_return: tuple[Step, ...]
    when_undone: tuple[Step, ...]
    when_failed: tuple[Step, ...]
    when_cancelled: tuple[Step, ...]


def workflow(*steps: Step, **options: Unpack[WorkflowOptions]) -> Workflow:
    """A workflow, by default of an hour."""
    options.setdefault("complete_within", timedelta(hours=1))
    return Workflow(name="story", steps=steps, **options)


def plan(*steps: Step, **options: Unpack[WorkflowOptions]) -> Plan:
    return plan_of(workflow(*steps, **options))


def states(task: Task) -> dict[str, ProcessState]:
    """The state of each step that something has happened to."""
    return {name: record.process_state for name, record in task.steps.items()}


@dataclass
class World:
    """One task, its plan and a clock. Every event passes `check`, which knows the invariants."""

    plan: Plan
    options: ProcessingOptions = PLAIN
    order: Json = None
    agents: Agents = field(default_factory=dict)
    queues: SchedulerQueues = NOTHING_KNOWN
    turn: Turn | None = None
    jitter: float = 0.5
    now: int = T0
    stored_plan: bool = True
    next_plan: Plan | None = None
    decisions: list[tuple[Task, Event, Decision]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    task: Task = field(init=False)
    _nonces: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        limit = None if self.plan.limit is None else "its key"
        self.task = new_task(self.plan, "ord-1", self.options, self.now, shards=16, limit=limit)
        self.task = replace(self.task, shard=3, lane=OPEN)

    # --- events ------------------------------------------------------------------------------

    def claimant(self, sent_at: int | None = None) -> Claimant:
        """A message that never came before."""
        return Claimant("sched", f"{next(self._nonces):06x}", sent_at)

    def apply(self, event: Event) -> Decision:
        """Decide, check what holds for every decision, and store."""
        before = self.task
        decision = self.decide(event)
        assert self.decide(event) == decision, "the same arguments give the same decision"
        if self.next_plan is not None and decision.task.plan == self.next_plan.hash:
            self.plan = self.next_plan
        check(self.plan, before, event, decision, self.now)
        self.decisions.append((before, event, decision))
        self.task = decision.task
        for command in decision.actions:
            if isinstance(command, SendRequest):
                token = self.task.step(command.step).locked_by
                assert token is not None
                self.requests.append((command.step, token))
        return decision

    def decide(self, event: Event) -> Decision:
        """What would be decided now; nothing is stored."""
        return decide(
            self.plan if self.stored_plan else None,
            self.task,
            event,
            self.now,
            order=self.order,
            agents=self.agents,
            jitter=self.jitter,
            next_plan=self.next_plan,
            queues=self.queues,
            turn=self.turn,
        )

    def start(self, claimant: Claimant | None = None) -> Decision:
        return self.apply(Start(claimant or self.claimant()))

    def inspect(self) -> Decision:
        return self.apply(Inspect())

    def reply(
        self,
        name: str,
        outcome: Outcome,
        *,
        lock: str | None = None,
        error: StepError | None = None,
        result: Json = None,
        retry_after: int | None = None,
        key: str | None = None,
        operation: str | None = None,
        claimant: Claimant | None = None,
        until: int | None = None,
        remind_every: int | None = None,
        again_in: int | None = None,
        within: int | None = None,
        outcome_unknown: bool = False,
        effect: Effect | None = None,
        callback: bool = False,
        then: tuple[StepToAdd, ...] = (),
        left_out: str | None = None,
        end: EarlyEnd | None = None,
        sender: str | None = None,
    ) -> Decision:
        """An answer to what the step is at, its current claim unless another is given."""
        record = self.task.step(name)
        operation = operation or record.operation
        return self.apply(
            Replied(
                claimant or self.claimant(),
                step=name,
                operation=operation,
                lock=lock or record.locked_by or "nobody",
                key=key or idempotency_key(self.task.task_id, name, operation, record),
                outcome=outcome,
                result=result,
                error=error,
                retry_after=retry_after,
                until=until,
                remind_every=remind_every,
                again_in=again_in,
                within=within,
                outcome_unknown=outcome_unknown,
                effect=effect,
                callback=callback,
                then=then,
                left_out=left_out,
                end=end,
                sender=sender,
            )
        )

    def succeeds(
        self,
        name: str,
        result: Json = None,
        lock: str | None = None,
        claimant: Claimant | None = None,
    ) -> Decision:
        return self.reply(name, Outcome.SUCCEEDED, result=result, lock=lock, claimant=claimant)

    def adds(self, name: str, *then: StepToAdd, lock: str | None = None) -> Decision:
        """The step succeeds, and its reply adds these steps."""
        return self.reply(name, Outcome.SUCCEEDED, then=then, lock=lock)

    def ends(self, name: str, why: str = "not wanted", *, undo: bool = False) -> Decision:
        """The step succeeds, and its reply ends the task early."""
        return self.reply(name, Outcome.SUCCEEDED, end=EarlyEnd(why, undo))

    def fails(self, name: str, lock: str | None = None, retry_after: int | None = None) -> Decision:
        error = StepError("Unavailable", "503")
        return self.reply(name, Outcome.TRANSIENT, error=error, lock=lock, retry_after=retry_after)

    def is_refused(
        self, name: str, lock: str | None = None, effect: Effect | None = None
    ) -> Decision:
        error = StepError("CardDeclined", "insufficient funds")
        return self.reply(name, Outcome.PERMANENT, error=error, lock=lock, effect=effect)

    def gives_back(
        self,
        name: str,
        *,
        retry_after: int | None = None,
        called: bool = False,
        lock: str | None = None,
        key: str | None = None,
        effect: Effect | None = None,
        claimant: Claimant | None = None,
    ) -> Decision:
        """The agent cannot take the step now: its breaker is open, or it is at its rate."""
        return self.reply(
            name,
            Outcome.HELD,
            error=StepError("Held", "the breaker of worker is open"),
            retry_after=retry_after,
            outcome_unknown=called,
            lock=lock,
            key=key,
            effect=effect,
            claimant=claimant,
        )

    def shows_progress(self, name: str, lock: str | None = None) -> Decision:
        return self.reply(name, Outcome.PROGRESS, lock=lock)

    def waits_for_callback(
        self,
        name: str,
        seconds: float,
        lock: str | None = None,
        *,
        remind_every: float | None = None,
    ) -> Decision:
        until = self.now + round(seconds * SECOND)
        every = None if remind_every is None else round(remind_every * SECOND)
        return self.reply(name, Outcome.WAITING, until=until, lock=lock, remind_every=every)

    def is_not_done(
        self, name: str, again_in: float = 60, within: float = 600, lock: str | None = None
    ) -> Decision:
        """The agent has polled an outside job, which is not done yet. Times are in seconds."""
        times = (round(again_in * SECOND), round(within * SECOND))
        return self.reply(name, Outcome.POLLING, lock=lock, again_in=times[0], within=times[1])

    # --- agents ------------------------------------------------------------------------------

    def hold(self, agent: str, seconds: float) -> "World":
        """From now on, and for so long, the agent takes no work."""
        view = self.agents.get(f"{agent}/normal", AgentView())
        until = self.now + round(seconds * SECOND)
        held = replace(view, agent_hold=HoldView(until, f"{agent} is held by ann"))
        self.agents = {**self.agents, f"{agent}/normal": held}
        return self

    def release(self, agent: str) -> "World":
        view = self.agents[f"{agent}/normal"]
        self.agents = {**self.agents, f"{agent}/normal": replace(view, agent_hold=None)}
        return self

    # --- what a person asks ------------------------------------------------------------------

    def asked(self, **options: Unpack[AskedOptions]) -> CommandSource:
        """A command that never came before."""
        return CommandSource(f"c-{next(self._nonces)}", "ann", **options)

    def resubmit(
        self,
        *steps: str,
        fresh_key: bool = False,
        again: bool = False,
        under: Plan | None = None,
    ) -> Decision:
        self.next_plan = under or self.next_plan
        plan = under.hash if under else None
        return self.apply(
            Resubmit(self.asked(), steps, fresh_key=fresh_key, again=again, plan=plan)
        )

    def correct(self, *changes: Change, **options: Unpack[CorrectionOptions]) -> Decision:
        return self.apply(Resubmit(self.asked(), changes=changes, **options))

    def ask_undo(self, *steps: str) -> Decision:
        """The person sees whether the task is completed."""
        seen = self.task.version if self.task_state() is TaskState.COMPLETED else None
        asked = self.asked(seen_version=seen)
        return self.apply(UndoPart(asked, steps) if steps else UndoAsked(asked))

    def cancel(self, *, undo: bool = True) -> Decision:
        return self.apply(Cancel(self.asked(), undo=undo))

    def resolve(
        self, name: str, *, did: bool = True, result: Json = None, fresh_key: bool = False
    ) -> Decision:
        return self.apply(Resolve(self.asked(), name, did, result, fresh_key))

    def extend(self, seconds: int, name: str | None = None) -> Decision:
        return self.apply(Extend(self.asked(), seconds, name))

    def erase(self) -> Decision:
        return self.apply(Erase(replace(self.asked(), reason="request 17")))

    def move(self, under: Plan) -> Decision:
        self.next_plan = under
        return self.apply(Move(self.asked(), under.hash))

    def signal(self, name: str, data: Json = None, signal_id: str | None = None) -> Decision:
        """The application sends a signal, which never came before unless it has an id."""
        asked = CommandSource(signal_id or f"s-{next(self._nonces)}", "application")
        return self.apply(Signalled(asked, name, data))

    def run_now(self) -> Decision:
        return self.apply(RunNow(self.asked()))

    # --- time --------------------------------------------------------------------------------

    def wait(self, seconds: float) -> "World":
        self.now += round(seconds * SECOND)
        return self

    def wait_until(self, instant: int | None) -> "World":
        assert instant is not None
        self.now = max(self.now, instant)
        return self

    def until_overdue(self, name: str) -> "World":
        return self.wait_until(stored_step(self.task.step(name)).complete_by)

    def overdue(self, name: str) -> Decision:
        """Nobody answers in time, and the timer says so."""
        return self.until_overdue(name).inspect()

    # --- looking -----------------------------------------------------------------------------

    def record(self, name: str) -> StepRecord:
        return self.task.step(name)

    def request(self, name: str) -> AgentRequest:
        """The request that is sent to the agent of a step now."""
        return request_for(self.plan, self.task, name, self.order, self.now)

    def lock(self, name: str) -> str:
        token = self.task.step(name).locked_by
        assert token is not None
        return token

    def task_state(self) -> TaskState:
        return self.task.state

    def state(self, name: str) -> ProcessState:
        return self.task.step(name).process_state

    def owed(self) -> list[str]:
        return [owed.name for owed in self.task.owed]

    def deliver_owed(self) -> None:
        self.task = without_owed(self.task, self.now)


def begun(
    *steps: Step,
    asked: ProcessingOptions = PLAIN,
    order: Json = None,
    **options: Unpack[WorkflowOptions],
) -> World:
    """A task of these steps, of which those that wait for no other were sent to their agents."""
    world = World(plan(*steps, **options), asked, order=order)
    world.start()
    return world


def requests_in(decision: Decision) -> list[str]:
    """The steps whose requests a decision sends."""
    return [command.step for command in decision.actions if isinstance(command, SendRequest)]


def reached(worlds: Sequence[World]) -> set[tuple[TaskState, TaskEvent, TaskState]]:
    """The (state, event, new state) triples that these stories went through."""
    return {
        (before.state, TaskEvent(type(event).__name__), decision.task.state)
        for world in worlds
        for before, event, decision in world.decisions
    }

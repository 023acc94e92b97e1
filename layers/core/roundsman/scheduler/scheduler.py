"""The scheduler: loads a task, asks the machine, writes with a condition, sends what it decided.

It keeps nothing between messages; any instance continues any task from its record. Commit, then
send; the message is acknowledged (the call returns) only after what it caused was sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from roundsman.alerts.reporter import Reporter
from roundsman.engine.history import refusal
from roundsman.engine.machine import decide
from roundsman.engine.requests import agent_of, request_for
from roundsman.errors import (
    InvalidMessage,
    NoTransition,
    Problem,
    Refused,
    TryAgain,
    UnknownAgent,
    UnreadableRecord,
)
from roundsman.model.events import (
    COMMAND_KINDS,
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
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json, sha256
from roundsman.model.plan import Plan
from roundsman.model.queue_lag import with_unread
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, Task, idempotency_key, operation_of
from roundsman.ports import (
    LONGEST_DELAY,
    AgentBoard,
    Clock,
    GroupStore,
    OrderStore,
    Outbox,
    PlanStore,
    Superseded,
    TaskStore,
)
from roundsman.scheduler.lookahead import delay_until
from roundsman.scheduler.order_cache import OrderRows
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.wire.commands import INSPECT, Command
from roundsman.wire.messages import AgentRequest, Reply

RACES = 30
"""How often a decision is made anew after losing a race before the message is given back.

The answers to a hundred items come all at once, for one record: with ten handlers, one in
twenty-five lost ten races, and none thirty.
"""


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one message, for the log and the metrics. `task` is None where it is gone.

    `unnoted` says why an undone order is not in its failure group, if so.
    """

    reason: str
    task: Task | None = None
    before: Task | None = None
    requests: tuple[AgentRequest, ...] = ()
    delivered: OwedResult = field(default_factory=OwedResult)
    unnoted: str | None = None


def _claimed_before(task: Task, claimant: Claimant) -> bool:
    return any(r.under_way and claimant.made(r.locked_by) for r in task.steps.values())


def newly_held(handled: Handled) -> list[str]:
    """The steps that wait since this message because their agent takes no work."""
    task, before = handled.task, handled.before
    if task is None or before is None or task is before:
        return []
    return [
        name
        for name, record in task.steps.items()
        if record.held_since is not None and before.step(name).held_since is None
    ]


def outcome_of(handled: Handled) -> dict[str, Json]:
    """What was decided, for the log: `sent` has the lock of each step that was requested.

    `agents` says who was asked where that is not the plan's own agent, `state` what the task is
    where it is not Active.
    """
    task, asked = handled.task, handled.requests
    if task is None:
        return {"reason": handled.reason}
    fields: dict[str, Json] = {"reason": handled.reason}
    if task.state is not TaskState.ACTIVE:
        fields["state"] = task.state.value
    if asked:
        fields["sent"] = {request.step: request.lock for request in asked}
        if others := {each.step: agent for each in asked if (agent := task.step(each.step).agent)}:
            fields["agents"] = {**others}
    return fields


class Scheduler:
    """Handles the messages of the SchedulerQueue and of the agents' reply queues."""

    def __init__(
        self,
        *,
        tasks: TaskStore,
        orders: OrderStore,
        plans: PlanStore,
        board: AgentBoard,
        groups: GroupStore,
        outbox: Outbox,
        clock: Clock,
        jitter: Callable[[], float],
        instance: str,
    ) -> None:
        self._tasks = tasks
        self._orders = OrderRows(orders)
        self._plans = plans
        self._board = board
        self._outbox = outbox
        self._clock = clock
        self._jitter = jitter
        self._instance = instance
        self._reporter = Reporter(groups=groups, outbox=outbox, board=board, clock=clock)

    def command(self, command: Command, message_id: str) -> Handled:
        """Do what a command asks. Raises TryAgain; repeating it is harmless."""
        claimant = self._claimant(message_id)
        event = command.event or (Inspect() if command.kind == INSPECT else Start(claimant))
        try:
            return self._handle(command.task_id, event, claimant)
        except (UnreadableRecord, NoTransition) as broken:
            if command.kind != INSPECT:
                raise
            # Nobody waits for this one: the entry stands, and the supervisor alerts when it is due.
            return Handled(f"left to the supervisor, which alerts: {type(broken).__name__}")

    def reply(self, reply: Reply, message_id: str) -> Handled:
        """Take an agent's reply. Raises TryAgain; repeating it is harmless."""
        claimant = self._claimant(message_id)
        return self._handle(reply.task_id, reply.event(claimant), claimant)

    def _claimant(self, message_id: str) -> Claimant:
        return Claimant(self._instance, sha256(message_id)[:10])

    def _handle(self, task_id: str, event: Event, claimant: Claimant) -> Handled:
        # What people ask may be refused, and most inspections find nothing to do.
        mostly_written = isinstance(event, Start | Replied)
        handled = self._by_a_cheap_read(task_id, event, claimant) if mostly_written else None
        for _ in range(RACES):
            if handled is not None:
                return handled
            task = self._tasks.load(task_id, self._clock())
            if task is None:
                return self._gone(event)
            plan = self._plans.plan(task.plan)
            try:
                decision = self._decide(plan, task, event, claimant)
            except Refused as refused:
                return self._refused(task, event, str(refused))
            handled = self._commit(plan, task, decision, claimant)
        if handled is None:
            raise TryAgain(f"{task_id}: lost the race {RACES} times")
        return handled

    def _by_a_cheap_read(self, task_id: str, event: Event, claimant: Claimant) -> Handled | None:
        """Decide on what may be the record of a moment ago; None where that is not enough.

        A decision that is written is held against the version that was seen, so it is as good as
        any. That there is nothing to do, or that it cannot be done, only the latest record says.
        """
        try:
            task = self._tasks.load(task_id, self._clock(), latest=False)
            if task is None:
                return None
            plan = self._plans.plan(task.plan)
            decision = self._decide(plan, task, event, claimant)
        except (Refused, NoTransition, UnreadableRecord):
            return None
        if decision.task is task:
            return None
        return self._commit(plan, task, decision, claimant)

    def _commit(
        self, plan: Plan | None, task: Task, decision: Decision, claimant: Claimant
    ) -> Handled | None:
        """Store and send what was decided; None where another decision came first.

        A refusal may also be this very write, its answer lost: the record then shows this
        message's own claims, and deciding again repeats just their requests.
        """
        if decision.task is not task:
            saved = self._tasks.save(decision.task, seen=task.version, history=decision.history)
            if isinstance(saved, Superseded):
                return None
        return self._send(plan, task, decision, claimant)

    def _gone(self, event: Event) -> Handled:
        """Late messages of a removed task are ordinary; a person's command is put aside."""
        why = "no such task; its retention is over, or it never was"
        if isinstance(event, Start | Replied | Inspect):
            return Handled(why)
        raise InvalidMessage([Problem("taskId", why)])

    def _refused(self, task: Task, event: Event, why: str) -> Handled:
        """Whoever asked finds the reason in the task's history."""
        if isinstance(event, Start | Replied | Inspect):
            raise NoTransition(why)  # the stack's own events are never refused
        kind = COMMAND_KINDS[type(event)]
        row = refusal(kind, event.asked, why, task.version, self._clock())
        self._tasks.add_history(task.task_id, row)
        return Handled(row.reason, task, task)

    def _decide(self, plan: Plan | None, task: Task, event: Event, claimant: Claimant) -> Decision:
        """An inspection that finds something to start is followed by Start, in the same write.

        So is one, or a command, that comes again: it may have died before it sent what it had
        claimed.
        """
        now = self._clock()
        order = self._orders.content_of(task) if plan and plan.has_conditions else None
        agents, jitter = self._board.agents(), self._jitter()
        if plan is not None:
            agents = with_unread(agents, plan, task.priority)
        first = decide(plan, task, event, now, order=order, agents=agents, jitter=jitter)
        claims_itself = isinstance(event, Start | Replied)
        comes_again = not claims_itself and _claimed_before(first.task, claimant)
        if StartTask() not in first.actions and not comes_again:
            return first
        start = Start(claimant)
        return first.then(
            decide(plan, first.task, start, now, order=order, agents=agents, jitter=jitter)
        )

    def _send(
        self, plan: Plan | None, before: Task, decision: Decision, claimant: Claimant
    ) -> Handled:
        try:
            requests = self._send_requests(plan, decision) if plan else ()
        except UnknownAgent as unknown:
            return self._unsendable(unknown, plan, decision, claimant)
        delivered = send_owed(
            decision.task,
            plan,
            seen=before.version,
            tasks=self._tasks,
            outbox=self._outbox,
            clock=self._clock,
            reporter=self._reporter,
        )
        self._send_inspects(decision)
        self._send_end(before, decision.task)
        unnoted = self._reporter.ended(before, decision.task, plan)
        return Handled(decision.reason, decision.task, before, requests, delivered, unnoted)

    def _send_requests(self, plan: Plan, decision: Decision) -> tuple[AgentRequest, ...]:
        task = decision.task
        steps = [command.step for command in decision.actions if isinstance(command, SendRequest)]
        if not steps:
            return ()
        order, now = self._orders.content_of(task), self._clock()
        requests = [request_for(plan, task, step, order, now) for step in steps]
        self._outbox.send_requests(
            [(agent_of(plan, task, r.step), task.priority, r) for r in requests]
        )
        return tuple(requests)

    def _unsendable(
        self, unknown: UnknownAgent, plan: Plan | None, decision: Decision, claimant: Claimant
    ) -> Handled:
        """The stack has no queue for an agent that the plan names.

        As with a step that has no handler, code and plan are of different age, and a deployment
        may bring the agent (back): the attempt has failed for now, with the reason in words.
        """
        task = decision.task
        name = next(
            command.step
            for command in decision.actions
            if isinstance(command, SendRequest)
            and plan is not None
            and agent_of(plan, task, command.step) == unknown.agent
        )
        record = task.step(name)
        operation = operation_of(record)
        event = Replied(
            claimant=claimant,
            step=name,
            operation=operation,
            lock=record.locked_by or "",
            key=idempotency_key(task.task_id, name, operation, record),
            outcome=Outcome.TRANSIENT,
            error=StepError("UnknownAgent", str(unknown)),
            retry_after=MINUTE,
        )
        return self._handle(task.task_id, event, claimant)

    def _send_inspects(self, decision: Decision) -> None:
        for command in decision.actions:
            if isinstance(command, InspectAt):
                delay = max(0, command.at - self._clock())
                if delay <= LONGEST_DELAY:
                    self._try_inspect(decision.task.task_id, delay)

    def _send_end(self, before: Task, task: Task) -> None:
        """Where a task's time begins now, or a person has changed it: look when it is over.

        That may be before a supervisor has seen its due entry.
        """
        changed = task.complete_by != before.complete_by
        by_command = changed and task.command_ids != before.command_ids
        begins = before.state is TaskState.SCHEDULED and task.state is not TaskState.SCHEDULED
        if task.ending is not None or not (by_command or begins):
            return
        delay = delay_until(task.complete_by, self._clock())
        if delay is not None:
            self._try_inspect(task.task_id, delay)

    def _try_inspect(self, task_id: str, delay: int) -> None:
        """A lost Inspect is late, not lost: the due entry stands behind it."""
        try:
            self._outbox.send_inspect(task_id, delay=delay)
        except TryAgain:
            return

"""The scheduler handles commands and replies: it loads, decides, stores and sends.

It loads the task, gets a decision from the engine, stores it with a conditional write, and sends
its actions. Several replies of one task are decided one after the other, and stored by one write.
No state is kept between messages: any instance can continue any task from its record.
A message is acknowledged (the call returns) only after the actions that it caused were sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from roundsman.alerts.reporter import Reporter
from roundsman.definition.plan import Plan
from roundsman.engine.history import refusal
from roundsman.engine.machine import decide
from roundsman.engine.requests import agent_of, request_for
from roundsman.errors import (
    CallRefused,
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
    Erase,
    Event,
    Inspect,
    InspectAt,
    Outcome,
    Replied,
    Resubmit,
    SendRequest,
    Start,
    StartTask,
)
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json, sha256
from roundsman.model.queue_lag import with_unread
from roundsman.model.scheduler_queues import (
    COMMANDS,
    NOTHING_KNOWN,
    is_mark_due,
    replies_key,
    wanted_key,
)
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, Task, idempotency_key, operation_of
from roundsman.ports import (
    LONGEST_DELAY,
    AgentBoard,
    Clock,
    GroupStore,
    OrderRow,
    OrderStore,
    Outbox,
    PlanStore,
    Superseded,
    TaskStore,
)
from roundsman.scheduler.erasure import erase_beside, erase_without_task
from roundsman.scheduler.fold import ArrivedReply, Fold
from roundsman.scheduler.lookahead import delay_until
from roundsman.scheduler.order_cache import OrderCache
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.scheduler.queue_watch import QueueWatch
from roundsman.scheduler.task_cache import TaskCache
from roundsman.wire.commands import INSPECT, START, Command
from roundsman.wire.messages import AgentRequest, Reply

MAX_WRITE_ATTEMPTS = 30
"""Attempts to store a decision before the message is returned to its queue (TryAgain).

The replies to the items of a fan-out arrive at once, and all change one record. With 100 items and
10 handlers, one message in 25 lost 10 races, and none lost 30.
"""


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one message, for the log and the metrics."""

    reason: str
    task: Task | None = None
    """The task after the decision; None if there is no such task."""
    before: Task | None = None
    """The task before the decision."""
    requests: tuple[AgentRequest, ...] = ()
    """The requests that were sent to agents."""
    delivered: OwedResult = field(default_factory=OwedResult)
    unnoted: str | None = None
    """Why an undone order could not be added to its failure group."""


def _claimed_before(task: Task, claimant: Claimant) -> bool:
    return any(
        r.under_way and (claimant.made(r.locked_by) or claimant.made(r.reminded_by))
        for r in task.steps.values()
    )


def _needs_order(plan: Plan, task: Task, event: Event) -> bool:
    """Whether the decision may read the order: conditions, lists of items and corrections do."""
    if task.erased_at is not None or isinstance(event, Erase):
        return False
    return plan.has_conditions or (isinstance(event, Resubmit) and bool(event.changes))


def newly_held(handled: Handled) -> list[str]:
    """The steps that this message parked because their agent is on hold."""
    task, before = handled.task, handled.before
    if task is None or before is None or task is before:
        return []
    return [
        name
        for name, record in task.steps.items()
        if record.held_since is not None and before.step(name).held_since is None
    ]


def outcome_of(handled: Handled, *, with_locks: bool = True) -> dict[str, Json]:
    """The decision as fields for the log.

    `reason` is always present. `state` is present if the task is not Active, `sent` (the lock of
    each requested step) if requests were sent and `with_locks`, and `agents` (by step) if a request
    went to another agent than the plan's first.
    """
    task, asked = handled.task, handled.requests
    if task is None:
        return {"reason": handled.reason}
    fields: dict[str, Json] = {"reason": handled.reason}
    if task.state is not TaskState.ACTIVE:
        fields["state"] = task.state.value
    if asked:
        if with_locks:
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
        self._order_rows = orders
        self._orders = OrderCache(orders)
        self._stored = TaskCache()
        self._ahead = dict[str, tuple[Task, OrderRow]]()
        self._plans = plans
        self._board = board
        self._queues = QueueWatch(board, clock)
        self._outbox = outbox
        self._clock = clock
        self._jitter = jitter
        self._instance = instance
        self._reporter = Reporter(groups=groups, outbox=outbox, board=board, clock=clock)

    def read_ahead(self, task_ids: Sequence[str]) -> str | None:
        """Read the tasks that `start` commands will begin, and their orders, by one call.

        The commands that follow are then decided without a read. Returns why nothing could be read,
        or None; each command then reads for itself.
        """
        self._ahead.clear()
        try:
            found = self._tasks.load_with_orders(task_ids, self._clock()) if task_ids else ()
        except (TryAgain, CallRefused) as problem:
            return str(problem)
        self._ahead.update((task.task_id, (task, order)) for task, order in found)
        return None

    def command(self, command: Command, message_id: str, sent_at: int | None = None) -> Handled:
        """Handle a command. Idempotent. Raises TryAgain if it must be delivered again.

        `sent_at` is when its message was sent (epoch ms); None if it is not known.
        """
        if command.kind != START:
            sent_at = None  # an Inspect is delayed on purpose
        handled = self._handle_command(command, self._claimant(message_id, sent_at))
        if sent_at is not None:
            self._note_read(COMMANDS, sent_at)
        return handled

    def _handle_command(self, command: Command, claimant: Claimant) -> Handled:
        event = command.event or (Inspect() if command.kind == INSPECT else Start(claimant))
        try:
            return self._handle(command.task_id, event, claimant)
        except (UnreadableRecord, NoTransition) as broken:
            if command.kind != INSPECT:
                raise
            # The due entry remains, and the supervisor sends an alert when it is due.
            return Handled(f"left to the supervisor, which sends an alert: {type(broken).__name__}")

    def reply(
        self,
        reply: Reply,
        message_id: str,
        sender: str | None = None,
        sent_at: int | None = None,
    ) -> Handled:
        """Handle a reply. Idempotent. Raises TryAgain if it must be delivered again.

        `sender` is the principal that sent the message, as AWS authenticated it. It is stored if
        the reply answers a callback. `sent_at` is when the message was sent (epoch ms).
        """
        claimant = self._claimant(message_id, sent_at)
        handled = self._handle(reply.task_id, reply.event(claimant, sender), claimant)
        self._note_reply(reply, handled, sent_at)
        return handled

    def _note_reply(self, reply: Reply, handled: Handled, sent_at: int | None) -> None:
        """Note that a reply was read and handled, if its agent is one of the task's plan."""
        if sent_at is None or handled.task is None:
            return
        plan = self._plans.plan(handled.task.plan)
        if plan is not None and reply.agent in plan.agents:
            self._note_read(replies_key(reply.agent), sent_at, wanted_key(reply.agent))

    def _note_read(self, key: str, sent_at: int, wanted: str | None = None) -> None:
        """Store that a message of this queue was read and handled, if such a mark is due.

        `wanted` is the key of the wish for such a mark. Best effort: without the mark, timeouts are
        counted later, or as if nothing were known.
        """
        agent, _, kind = key.partition("/")
        try:
            wish = self._board.marks().get(wanted) if wanted else None
            if is_mark_due(sent_at, self._clock(), wish):
                self._board.note_read(agent, kind, sent_at)
        except (TryAgain, CallRefused):
            return

    def replies(self, arrived: Sequence[ArrivedReply]) -> list[Handled | Exception]:
        """Handle replies of one task; those that one write can store are stored by one write.

        What is stored and sent is the same as by `reply`, called for one after the other. Returns
        for each reply what became of it, or the exception that `reply` would raise.
        """
        events = list[tuple[Replied, Claimant]]()
        for each in arrived:
            claimant = self._claimant(each.message_id, each.sent_at)
            events.append((each.reply.event(claimant, each.sender), claimant))
        results = list[Handled | Exception]()
        task_id = arrived[0].reply.task_id if arrived else ""
        while len(results) < len(events):
            rest = events[len(results) :]
            try:
                results += self._fold_replies(task_id, rest, first=not results)
            except Exception as problem:  # noqa: BLE001  # as `reply` raises it, for each of them
                results += [problem] * len(rest)
        for each, result in zip(arrived, results, strict=True):
            if not isinstance(result, Exception):
                self._note_reply(each.reply, result, each.sent_at)
        return results

    def _fold_replies(
        self, task_id: str, events: Sequence[tuple[Replied, Claimant]], *, first: bool
    ) -> Sequence[Handled | Exception]:
        """Handle at least the first of the replies, and those that can be stored with it.

        The `first` fold of a batch is decided on an eventually consistent read, like a single
        reply (`_by_a_cheap_read`). A later one would read the version before its predecessor's.
        """
        latest = not first
        for _ in range(MAX_WRITE_ATTEMPTS + 1):
            if len(events) == 1:
                return [self._handled_alone(task_id, *events[0])]
            task = self._read(task_id, latest=latest)
            if task is None and latest:
                return [self._gone(task_id, event) for event, _ in events]
            if task is not None:
                plan = self._plans.plan(task.plan)
                fold = self._fold(plan, task, events)
                if not fold.decisions:
                    return [self._handled_alone(task_id, *events[0])]
                # That a stale read shows nothing to change does not mean that there is nothing.
                if fold.changes or latest:
                    handled = self._commit_fold(plan, fold, [claimant for _, claimant in events])
                    if handled is not None:
                        return handled
            latest = True
        raise TryAgain(f"{task_id}: another write came first {MAX_WRITE_ATTEMPTS} times")

    def _read(self, task_id: str, *, latest: bool) -> Task | None:
        """Load the task; None if there is none, or if a stale read does not show it."""
        try:
            return self._tasks.load(task_id, self._clock(), latest=latest)
        except UnreadableRecord:
            if latest:
                raise
            return None

    def _fold(
        self, plan: Plan | None, task: Task, events: Sequence[tuple[Replied, Claimant]]
    ) -> Fold:
        """Decide as many of the replies, from the first on, as one write can store."""
        fold = Fold(task)
        for event, claimant in events:
            try:
                decision = self._decide(plan, fold.task, event, claimant)
            except Exception:  # noqa: BLE001  # handled alone, it raises the same
                break
            if not fold.add(decision) or fold.closed:
                break
        return fold

    def _handled_alone(
        self, task_id: str, event: Replied, claimant: Claimant
    ) -> Handled | Exception:
        try:
            return self._handle(task_id, event, claimant)
        except Exception as problem:  # noqa: BLE001  # of this reply; the others are not affected
            return problem

    def _commit_fold(
        self, plan: Plan | None, fold: Fold, claimants: Sequence[Claimant]
    ) -> list[Handled] | None:
        """Store the fold and send its actions; None if the conditional write failed.

        As in `_commit`, this write may itself have succeeded before. Decided again, each reply then
        finds its own claims in the record, and repeats their requests.
        """
        decision = fold.merged
        if fold.changes and not self._save(decision, seen=fold.before.version):
            return None
        handled = list[Handled]()
        for (before, part), claimant in zip(fold.parts(), claimants, strict=False):
            requests = self._requests_of(plan, replace(part, task=fold.task), claimant)
            if isinstance(requests, Handled):
                handled.append(requests)
            else:
                handled.append(Handled(part.reason, part.task, before, requests))
        delivered, unnoted = self._send_rest(plan, fold.before, decision)
        if handled[-1].task is fold.task:
            handled[-1] = replace(handled[-1], delivered=delivered, unnoted=unnoted)
        return handled

    def _claimant(self, message_id: str, sent_at: int | None) -> Claimant:
        return Claimant(self._instance, sha256(message_id)[:10], sent_at)

    def _handle(self, task_id: str, event: Event, claimant: Claimant) -> Handled:
        # Operator commands may be refused, and most Inspects find nothing to do: both would then
        # need a second, consistent read.
        mostly_written = isinstance(event, Start | Replied)
        handled = self._by_a_cheap_read(task_id, event, claimant) if mostly_written else None
        for _ in range(MAX_WRITE_ATTEMPTS):
            if handled is not None:
                return handled
            task = self._load(task_id, event)
            if task is None:
                return self._gone(task_id, event)
            plan = self._plans.plan(task.plan)
            try:
                decision = self._decide(plan, task, event, claimant)
            except Refused as refused:
                return self._refused(task, event, str(refused))
            plan = self._plan_after(plan, task, decision.task)
            handled = self._commit(plan, task, decision, claimant)
            if handled is not None and isinstance(event, Erase):
                erase_beside(decision.task, self._tasks)
        if handled is None:
            raise TryAgain(f"{task_id}: another write came first {MAX_WRITE_ATTEMPTS} times")
        return handled

    def _load(self, task_id: str, event: Event) -> Task | None:
        """Load the task; to erase it, also a record that has expired and is not removed yet."""
        return self._tasks.load(task_id, 0 if isinstance(event, Erase) else self._clock())

    def _by_a_cheap_read(self, task_id: str, event: Event, claimant: Claimant) -> Handled | None:
        """Decide on an eventually consistent read, at half the price of a consistent one.

        A reply to what this instance has just stored needs no read (`TaskCache`), nor does the
        start of a task that was read ahead. A stored decision is safe, because its write is
        conditional on the version that was read. Returns None if the event changes nothing, is
        refused or cannot be handled: only a consistent read can establish that. Also returns None
        if the conditional write failed.
        """
        kept = self._stored.take(task_id, event, self._clock())
        if isinstance(event, Start) and task_id in self._ahead:
            kept, order = self._ahead.pop(task_id)
            self._orders.keep(order)
        try:
            task = kept or self._tasks.load(task_id, self._clock(), latest=False)
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
        """Store the decision and send its actions; None if the conditional write failed.

        The condition also fails if this write succeeded before and its response was lost. The
        record then holds this message's own claims, and the next decision repeats their requests.
        """
        if decision.task is not task and not self._save(decision, seen=task.version):
            return None
        return self._send(plan, task, decision, claimant)

    def _save(self, decision: Decision, *, seen: int) -> bool:
        """Store the decision; False if the stored version is not `seen`."""
        task = decision.task
        saved = self._tasks.save(task, seen=seen, history=decision.history)
        if isinstance(saved, Superseded):
            return False
        if saved.moved:
            self._stored.drop(task.task_id)
        else:
            self._stored.keep(task, self._clock())
        return True

    def _gone(self, task_id: str, event: Event) -> Handled:
        """Ignore a late message of a removed task. Of its order, the rest can still be erased.

        Raises InvalidMessage for an operator's command, which becomes a rejected message.
        """
        if isinstance(event, Erase):
            reason = erase_without_task(
                task_id, event, self._clock(), tasks=self._tasks, orders=self._order_rows
            )
            if reason is not None:
                return Handled(reason)
        why = "no such task: its retention is over, or it never existed"
        if isinstance(event, Start | Replied | Inspect):
            return Handled(why)
        raise InvalidMessage([Problem("taskId", why)])

    def _refused(self, task: Task, event: Event, why: str) -> Handled:
        """Store why an operator's command was refused, as a row of the task's history."""
        if isinstance(event, Start | Replied | Inspect):
            raise NoTransition(why)  # only operators' commands may be refused
        kind = COMMAND_KINDS[type(event)]
        row = refusal(kind, event.asked, why, task.version, self._clock())
        self._tasks.add_history(task.task_id, row)
        return Handled(row.reason, task, task)

    def _decide(self, plan: Plan | None, task: Task, event: Event, claimant: Claimant) -> Decision:
        """Decide the event; if a step is ready, also decide Start, to be stored in the same write.

        Start also follows a redelivered Inspect or operator's command that has claimed steps: the
        earlier delivery may have died before it sent their requests.
        """
        now, known, jitter = self._clock(), self._board.agents(), self._jitter()
        inspects = isinstance(event, Inspect)
        queues = self._queues.known(plan, task) if inspects else NOTHING_KNOWN

        def decided(plan: Plan | None, task: Task, event: Event) -> Decision:
            return decide(
                plan,
                task,
                event,
                now,
                order=self._orders.content_of(task)
                if plan and _needs_order(plan, task, event)
                else None,
                agents=known if plan is None else with_unread(known, plan.agents, task.priority),
                jitter=jitter,
                next_plan=self._next_plan(event),
                queues=queues,
            )

        first = decided(plan, task, event)
        claims_itself = isinstance(event, Start | Replied)
        comes_again = not claims_itself and _claimed_before(first.task, claimant)
        if StartTask() not in first.actions and not comes_again:
            return first
        after = self._plan_after(plan, task, first.task)
        return first.then(decided(after, first.task, Start(claimant)))

    def _next_plan(self, event: Event) -> Plan | None:
        """The plan that a Resubmit names; None if it names none, or if that plan is not stored."""
        if not isinstance(event, Resubmit) or event.plan is None:
            return None
        return self._plans.plan(event.plan)

    def _plan_after(self, plan: Plan | None, before: Task, after: Task) -> Plan | None:
        """The task's plan after a decision; `plan` is the one before it."""
        return plan if after.plan == before.plan else self._plans.plan(after.plan)

    def _send(
        self, plan: Plan | None, before: Task, decision: Decision, claimant: Claimant
    ) -> Handled:
        requests = self._requests_of(plan, decision, claimant)
        if isinstance(requests, Handled):
            return requests
        delivered, unnoted = self._send_rest(plan, before, decision)
        return Handled(decision.reason, decision.task, before, requests, delivered, unnoted)

    def _requests_of(
        self, plan: Plan | None, decision: Decision, claimant: Claimant
    ) -> tuple[AgentRequest, ...] | Handled:
        """Send the decision's requests and return them.

        If the stack has no queue for one of them, its attempt fails; returns what became of that.
        """
        try:
            return self._send_requests(plan, decision) if plan else ()
        except UnknownAgent as unknown:
            return self._unsendable(unknown, plan, decision, claimant) or ()

    def _send_rest(
        self, plan: Plan | None, before: Task, decision: Decision
    ) -> tuple[OwedResult, str | None]:
        """Send what a stored decision causes besides requests.

        Returns what became of what it owed, and why an undone order could not be added to its
        failure group.
        """
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
        return delivered, self._reporter.ended(before, decision.task, plan)

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
    ) -> Handled | None:
        """End the attempt with a transient failure: the stack has no queue for the plan's agent.

        Code and plan are of different versions, as with a step that has no handler, and a
        deployment may add the agent. Returns None if only reminders could not be sent: they are
        given up, and the steps wait on.
        """
        task = decision.task
        names = [
            command.step
            for command in decision.actions
            if isinstance(command, SendRequest)
            and plan is not None
            and agent_of(plan, task, command.step) == unknown.agent
            and not task.step(command.step).waiting
        ]
        if not names:
            return None
        name = names[0]
        record = task.step(name)
        operation = operation_of(record)
        event = Replied(
            claimant=claimant,
            step=name,
            operation=operation,
            lock=record.locked_by or "",
            key=idempotency_key(task.task_id, name, operation, record),
            outcome=Outcome.TRANSIENT,
            error=StepError("UnknownAgent", str(unknown), unexpected=True),
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
        """Send an Inspect for the task's `perform_by`, if that was just set or changed.

        That is when a scheduled task begins, or an operator has extended the task. A supervisor may
        not read the due entry in time.
        """
        changed = task.perform_by != before.perform_by
        by_command = changed and task.command_ids != before.command_ids
        begins = before.state is TaskState.SCHEDULED and task.state is not TaskState.SCHEDULED
        if task.ending is not None or not (by_command or begins):
            return
        delay = delay_until(task.perform_by, self._clock())
        if delay is not None:
            self._try_inspect(task.task_id, delay)

    def _try_inspect(self, task_id: str, delay: int) -> None:
        """Send an Inspect, best effort: if it is lost, the supervisor finds the due entry."""
        try:
            self._outbox.send_inspect(task_id, delay=delay)
        except TryAgain:
            return

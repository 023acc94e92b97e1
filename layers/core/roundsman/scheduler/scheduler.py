"""The scheduler handles commands and replies: it loads, decides, stores and sends.

Each message takes the same way: load the task, decide, save by a conditional write, send. Several
messages about one task are decided one after the other, and stored by one write.
No state is kept between messages: any instance can continue any task from its record.
A message is acknowledged (the call returns) only after the actions that it caused were sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from roundsman.alerts.reporter import Reporter
from roundsman.definition.plan import Plan
from roundsman.engine.history import refusal
from roundsman.engine.machine import decide
from roundsman.engine.requests import agent_of, request_for
from roundsman.engine.signals import note_refused
from roundsman.engine.task_state import waits_for_its_time
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
    Move,
    Outcome,
    Replied,
    Resubmit,
    SendRequest,
    Signalled,
    Start,
    StartTask,
    WakeOrder,
)
from roundsman.model.holds import agents_of
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json, sha256
from roundsman.model.scheduler_queues import NOTHING_KNOWN, is_mark_due, wanted_key
from roundsman.model.situations import TURN, Parked, UnderWay
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, Task, idempotency_key
from roundsman.ports import (
    LONGEST_DELAY,
    AgentBoard,
    Clock,
    GroupStore,
    LimitStore,
    OrderStore,
    Outbox,
    PayloadStore,
    PlanStore,
    Superseded,
    TaskStore,
)
from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.erasure import erase_beside, erase_without_task
from roundsman.scheduler.fold import Fold
from roundsman.scheduler.lookahead import delay_until
from roundsman.scheduler.order_cache import OrderCache
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.scheduler.queue_watch import QueueWatch
from roundsman.wire.messages import AgentRequest, Reply

if TYPE_CHECKING:
    from roundsman.model.masked_values import MaskedTexts
    from roundsman.model.order_limit import Turn
    from roundsman.scheduler.order_limits import OrderLimits

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


class Delivery(NamedTuple):
    """An event, and the claimant of the message that delivered it."""

    event: Event
    claimant: Claimant


def _left_to_the_supervisor(problem: Exception) -> Handled:
    """The end of an Inspect: the due entry remains, and the supervisor alerts when it is due."""
    return Handled(f"left to the supervisor, which sends an alert: {type(problem).__name__}")


def _claimed_before(task: Task, claimant: Claimant) -> bool:
    under_way = (r.situation for r in task.steps.values() if isinstance(r.situation, UnderWay))
    return any(claimant.made(one.lock) or claimant.made(one.sent_by) for one in under_way)


def _needs_order(plan: Plan, task: Task, event: Event) -> bool:
    """Whether the decision may read the order: conditions, lists of items and corrections do."""
    if task.erased_at is not None or isinstance(event, Erase):
        return False
    return plan.has_conditions or (isinstance(event, Resubmit) and bool(event.changes))


def newly_held(handled: Handled) -> list[str]:
    """The steps that this message parked because of a hold."""
    task, before = handled.task, handled.before
    if task is None or before is None or task is before:
        return []
    return [
        name
        for name, record in task.steps.items()
        if record.held_since is not None
        and before.step(name).held_since is None
        and not (isinstance(record.situation, Parked) and record.situation.held_for == TURN)
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


@dataclass(kw_only=True, eq=False)
class Scheduler:
    """Handles the messages of the SchedulerQueue and of the agents' reply queues."""

    tasks: TaskStore
    orders: OrderStore
    plans: PlanStore
    board: AgentBoard
    groups: GroupStore
    outbox: Outbox
    clock: Clock
    jitter: Callable[[], float]
    instance: str
    search_secret: Callable[[], bytes]
    """Returns the secret of the search keys of masked values."""
    limits: Callable[[], LimitStore]
    """Returns where the turns of orders are stored that a limit counts."""
    payloads: PayloadStore | None = None
    """Where payloads are, to erase them; None if the stack has no PayloadBucket."""

    def __post_init__(self) -> None:
        """Create what the instance keeps from one batch to the next."""
        self._orders = OrderCache(self.orders)
        self._queues = QueueWatch(self.board, self.clock)
        self._reporter = Reporter(
            groups=self.groups, outbox=self.outbox, board=self.board, clock=self.clock
        )

    def handle(self, arrived: Sequence[Arrived]) -> list[Handled | Exception]:
        """Handle messages about one task, in this order. Idempotent.

        Starts and Inspects come last: of a signal and the end of the time for which it was awaited,
        the signal counts. Those messages that one write can store are stored by one write. What is
        stored and sent is the same as if each were handled alone. Returns for each message what
        became of it, or an exception; unless that is InvalidMessage, the message must be delivered
        again.
        """
        order = sorted(range(len(arrived)), key=lambda place: arrived[place].says_only_when)
        results = self._handle_in_order([arrived[place] for place in order])
        return [result for _, result in sorted(zip(order, results, strict=True), key=itemgetter(0))]

    def _handle_in_order(self, arrived: Sequence[Arrived]) -> list[Handled | Exception]:
        results = list[Handled | Exception]()
        deliveries = [self._delivery(each) for each in arrived]
        while len(results) < len(arrived):
            first, rest = arrived[len(results)], deliveries[len(results) :]
            try:
                results += self._handle_some(first.task_id, rest, latest=bool(results))
            except (UnreadableRecord, NoTransition) as problem:
                results.append(_left_to_the_supervisor(problem) if first.inspects else problem)
            except (TryAgain, CallRefused) as problem:  # of AWS, which the others would meet too
                results += [problem] * len(rest)
            except Exception as problem:  # noqa: BLE001  # the other messages are not affected
                results.append(problem)
        for each, result in zip(arrived, results, strict=True):
            if isinstance(result, Handled):
                self._note_read(each, result.task)
        return results

    def _delivery(self, arrived: Arrived) -> Delivery:
        nonce = sha256(arrived.message_id)[:10]
        claimant = Claimant(self.instance, nonce, arrived.waits_since)
        return Delivery(arrived.event(claimant), claimant)

    def _handle_some(
        self, task_id: str, deliveries: Sequence[Delivery], *, latest: bool
    ) -> list[Handled]:
        """Handle at least the first of the events, and those that can be stored with it.

        An event that nearly always changes the task is decided on an eventually consistent read,
        at half the price, unless `latest`. That is safe, because each write is on condition of the
        version that was read. Only a consistent read can show that there is nothing to do, that the
        task is gone, or that the event cannot be handled.
        """
        latest = latest or not isinstance(deliveries[0].event, Start | Replied)
        for _ in range(MAX_WRITE_ATTEMPTS):
            try:
                handled = self._try(task_id, deliveries, latest=latest)
            except (NoTransition, UnreadableRecord):
                if latest:
                    raise
            else:
                if handled:
                    return handled
            latest = True
        raise TryAgain(f"{task_id}: another write came first {MAX_WRITE_ATTEMPTS} times")

    def _try(self, task_id: str, deliveries: Sequence[Delivery], *, latest: bool) -> list[Handled]:
        """Load, decide, save and send. Empty if it must be tried again on a consistent read."""
        event = deliveries[0].event
        # An expired record that is not removed yet can still be erased.
        now = 0 if isinstance(event, Erase) else self.clock()
        task = self.tasks.load(task_id, now, latest=latest)
        if task is None:
            return [self._gone(task_id, event)] if latest else []
        plan = self.plans.plan(task.plan)
        try:
            fold = self._fold(plan, task, deliveries)
        except Refused as refused:
            handled = self._refused(plan, task, event, str(refused))
            return [] if handled is None else [handled]
        if fold.changes:
            merged = fold.merged
            saved = self.tasks.save(
                fold.task,
                seen=task.version,
                history=merged.history,
                inputs=merged.inputs,
                search=self._new_search_keys(plan, task, fold.task),
            )
            if isinstance(saved, Superseded):
                if fold.task.has_turn and not task.has_turn:
                    self._order_limits().lost_race(fold.task, self.clock())
                return []
        elif not latest:
            return []
        return self._send(self._plan_after(plan, task, fold.task), fold, deliveries)

    def _new_search_keys(
        self, plan: Plan | None, before: Task, after: Task
    ) -> tuple[str, ...] | None:
        """The keys by which the order is found after a correction of its input.

        None if they stay as they are: nothing is corrected, or it is not found by any field.
        """
        if len(after.corrections) <= len(before.corrections):
            return None
        plan, row = self._plan_after(plan, before, after), self._orders.stored_row(after)
        if plan is None or not (plan.search or row.search):
            return None
        from roundsman.model.search import search_keys  # late: needed rarely

        content = after.input(row.content)
        return search_keys(plan.search, plan.masked, content, self.search_secret)

    def _fold(self, plan: Plan | None, task: Task, deliveries: Sequence[Delivery]) -> Fold:
        """Decide as many of the events, from the first on, as one write can store.

        Raises what the decision on the first event raises.
        """
        fold = Fold(task)
        for event, claimant in deliveries:
            try:
                decision = self._decide(plan, fold.task, event, claimant)
            except Exception:
                if not fold.decisions:
                    raise
                break  # it is decided again as the first one, and raises the same
            if not fold.add(decision) or fold.closed:
                break
        return fold

    def _note_read(self, arrived: Arrived, task: Task | None) -> None:
        """Store that a message of its queue was read and handled, if such a mark is due.

        Of a reply, only if its agent is one of the task's plan. Best effort: without the mark,
        timeouts are counted later, or as if nothing were known.
        """
        sent_at, message = arrived.waits_since, arrived.message
        if sent_at is None:
            return
        agent, _, kind = arrived.queue.partition("/")
        try:
            wish = None
            if isinstance(message, Reply):
                plan = None if task is None else self.plans.plan(task.plan)
                if plan is None or agent not in plan.agents:
                    return
                wish = self.board.marks().get(wanted_key(agent))
            if is_mark_due(sent_at, self.clock(), wish):
                self.board.note_read(agent, kind, sent_at)
        except (TryAgain, CallRefused):
            return

    def _gone(self, task_id: str, event: Event) -> Handled:
        """Ignore a late message of a removed task. Of its order, the rest can still be erased.

        Raises InvalidMessage for a command of a person or an application and for an answer to a
        callback, which become rejected messages: somebody believes that they count. They are
        rejected at once, because a task never follows them: a message that is tried again would
        keep its reply queue from being seen empty.
        """
        if isinstance(event, Erase):
            reason = erase_without_task(
                task_id,
                event,
                self.clock(),
                tasks=self.tasks,
                orders=self.orders,
                payloads=self.payloads,
            )
            if reason is not None:
                return Handled(reason)
        why = "no such task: its retention is over, or it never existed"
        answers = isinstance(event, Replied) and event.callback
        if isinstance(event, Start | Replied | Inspect) and not answers:
            return Handled(why)
        raise InvalidMessage([Problem("taskId", why)])

    def _refused(self, plan: Plan | None, task: Task, event: Event, why: str) -> Handled | None:
        """Store why a command was refused, as a row of the task's history.

        Raises InvalidMessage for a signal, which becomes a rejected message: its application
        believes that it counts, and does not read the history. A step that waits for such a signal
        remembers it, in the same write; None if another write came first.
        """
        if isinstance(event, Start | Replied | Inspect):
            raise NoTransition(why)  # only operators' commands may be refused
        if plan is not None and plan.masks:
            why = self._texts_of(plan, task, event).text(why)  # it may repeat a name of the command
        kind, now = COMMAND_KINDS[type(event)], self.clock()
        row = refusal(kind, event.asked, why, task.version, now)
        if not isinstance(event, Signalled):
            self.tasks.add_history(task.task_id, row)
            return Handled(row.reason, task, task)
        said = f"{event.name} is refused: {why}"
        noted = task
        if plan is not None and not task.ended:
            noted = note_refused(plan, task, event.name, f"the signal {said}", now).task
        if noted is task:
            self.tasks.add_history(task.task_id, row)
        else:
            row = refusal(kind, event.asked, why, noted.version, now)
            saved = self.tasks.save(noted, seen=task.version, history=(row,))
            if isinstance(saved, Superseded):
                return None
        raise InvalidMessage([Problem("signal", said)])

    def _decide(self, plan: Plan | None, task: Task, event: Event, claimant: Claimant) -> Decision:
        """Decide the event; if a step is ready, also decide Start, to be stored in the same write.

        Start also follows a redelivered Inspect or operator's command that has claimed steps: the
        earlier delivery may have died before it sent their requests.
        """
        now, known, jitter = self.clock(), self.board.agents(), self.jitter()
        held = self.board.order_holds()
        inspects = isinstance(event, Inspect)
        if inspects and task.limit is not None:
            self._order_limits().compare(task, now)
        if plan is not None and plan.masks:  # here texts enter the task
            event = self._without_masked(plan, task, event)
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
                agents=known if plan is None else agents_of(plan.agents, task, known, held, now),
                jitter=jitter,
                next_plan=self._next_plan(event),
                queues=queues,
                turn=self._turn(plan, task, event, now),
            )

        first = decided(plan, task, event)
        if isinstance(event, Resubmit) and first.task is not task:
            first = replace(first, task=self._counted_again(plan, task, first.task))
        claims_itself = isinstance(event, Start | Replied)
        comes_again = not claims_itself and _claimed_before(first.task, claimant)
        if StartTask() not in first.actions and not comes_again:
            return first
        after = self._plan_after(plan, task, first.task)
        return first.then(decided(after, first.task, Start(claimant)))

    def _turn(self, plan: Plan | None, task: Task, event: Event, now: int) -> "Turn | None":
        """Whether it is the order's turn, if a limit counts it and the event may begin steps.

        If it is, that is stored.
        """
        if task.limit is None or task.has_turn or not isinstance(event, Start):
            return None
        if plan is None or plan.limit is None or task.ended or task.ending is not None:
            return None
        if waits_for_its_time(task, now):
            return None
        return self._order_limits().turn_of(task, plan.limit.at_once)

    def _order_limits(self) -> "OrderLimits":
        from roundsman.scheduler.order_limits import OrderLimits  # late: few workflows have a limit

        return OrderLimits(self.limits(), self.tasks, self.outbox)

    def _counted_again(self, plan: Plan | None, before: Task, after: Task) -> Task:
        """The resubmitted task, which a limit counts by its plan and its input as they are now."""
        plan = self._plan_after(plan, before, after)
        if plan is None or plan.limit is None:
            return after
        from roundsman.engine.order_limit import limit_key  # late: few workflows have a limit

        content = after.input(self._orders.content_of(after))
        try:
            key = limit_key(plan.workflow, plan.limit, content, self.search_secret)
        except ValueError as error:
            raise Refused(str(error)) from error
        return replace(after, limit=key)

    def _without_masked(self, plan: Plan, task: Task, event: Event) -> Event:
        """The event without the masked values of the task in its texts."""
        from roundsman.engine.masks import says_something, without_masked  # late: needed rarely

        if not says_something(event):
            return event
        return without_masked(event, self._texts_of(plan, task, event))

    def _texts_of(self, plan: Plan, task: Task, event: Event) -> "MaskedTexts":
        """What finds the values of the task that its plan masks.

        The order is read only if the plan masks fields of it. The input of an added step is read
        only if the event is about that step.
        """
        from roundsman.engine.masks import needed_step_inputs, needs_order, texts_of

        row = self._orders.row_of(task) if needs_order(plan, task) else None
        added = needed_step_inputs(plan, task, event)
        inputs = self.tasks.inputs(task, added) if added else {}
        content = None if row is None else row.content
        return texts_of(plan, task, content, event=event, step_inputs=inputs)

    def _next_plan(self, event: Event) -> Plan | None:
        """The plan that a Resubmit names; None if it names none, or if that plan is not stored."""
        if not isinstance(event, Resubmit | Move) or event.plan is None:
            return None
        return self.plans.plan(event.plan)

    def _plan_after(self, plan: Plan | None, before: Task, after: Task) -> Plan | None:
        """The task's plan after a decision; `plan` is the one before it."""
        return plan if after.plan == before.plan else self.plans.plan(after.plan)

    def _send(self, plan: Plan | None, fold: Fold, deliveries: Sequence[Delivery]) -> list[Handled]:
        """Send what the stored decisions cause, and return what became of each event.

        If the response to the write was lost, the events are decided again. The record then has
        their own claims, and their requests are sent again.
        """
        handled = list[Handled]()
        inputs = fold.merged.inputs  # of steps that one decision adds, and a later one claims
        for (before, part), (_, claimant) in zip(fold.parts(), deliveries, strict=False):
            requests = self._requests_of(
                plan, replace(part, task=fold.task, inputs=inputs), claimant
            )
            if isinstance(requests, Handled):
                handled.append(requests)
            else:
                handled.append(Handled(part.reason, part.task, before, requests))
        delivered, unnoted = self._send_rest(plan, fold.before, fold.merged)
        if handled[-1].task is fold.task:
            handled[-1] = replace(handled[-1], delivered=delivered, unnoted=unnoted)
        if isinstance(deliveries[0].event, Erase):
            erase_beside(fold.task, self.tasks, self.payloads)
        return handled

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
            tasks=self.tasks,
            outbox=self.outbox,
            clock=self.clock,
            reporter=self._reporter,
            limits=self.limits,
        )
        self._send_inspects(decision)
        self._send_end(before, decision.task)
        if decision.task.limit is not None:
            at_once = plan.limit.at_once if plan is not None and plan.limit is not None else 1
            self._order_limits().look_back(before, decision.task, at_once, self.clock())
        return delivered, self._reporter.ended(before, decision.task, plan)

    def _send_requests(self, plan: Plan, decision: Decision) -> tuple[AgentRequest, ...]:
        task = decision.task
        steps = [command.step for command in decision.actions if isinstance(command, SendRequest)]
        if not steps:
            return ()
        order, now = self._orders.content_of(task), self.clock()
        inputs = self._step_inputs(decision, steps)
        requests = [request_for(plan, task, step, order, now, inputs.get(step)) for step in steps]
        self.outbox.send_requests(
            [(agent_of(plan, task, r.step), task.priority, r) for r in requests]
        )
        return tuple(requests)

    def _step_inputs(self, decision: Decision, steps: Sequence[str]) -> Mapping[str, Json]:
        """The inputs of those of these steps that were added: as decided now, or as stored."""
        task, known = decision.task, decision.inputs
        stored = [step for step in steps if step in task.added and step not in known]
        return {**known, **self.tasks.inputs(task, stored)} if stored else known

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
        operation = record.operation
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
        [handled] = self._handle_some(task.task_id, [Delivery(event, claimant)], latest=True)
        return handled

    def _send_inspects(self, decision: Decision) -> None:
        for command in decision.actions:
            if isinstance(command, InspectAt):
                delay = max(0, command.at - self.clock())
                if delay <= LONGEST_DELAY:
                    self._try_inspect(decision.task.task_id, delay)
            elif isinstance(command, WakeOrder):
                self._try_inspect(command.order, 0)

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
        delay = delay_until(task.perform_by, self.clock())
        if delay is not None:
            self._try_inspect(task.task_id, delay)

    def _try_inspect(self, task_id: str, delay: int) -> None:
        """Send an Inspect, best effort: if it is lost, the supervisor finds the due entry."""
        try:
            self.outbox.send_inspect(task_id, delay=delay)
        except TryAgain:
            return

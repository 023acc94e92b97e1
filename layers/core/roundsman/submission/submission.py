"""Submission stores an order and its task in one operation, once for each order id.

It also passes an application's cancellation of an order, or a signal to it, on to the scheduler.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman.definition.plan import Plan
from roundsman.engine.new_task import RECEIVED, ProcessingOptions, new_task
from roundsman.errors import Problem, RejectedOrder, TryAgain
from roundsman.model.events import Cancel, CommandSource, Signalled
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.schedules import QUEUED_FOR, Fate, RecurringRun
from roundsman.model.task import Owed, Task
from roundsman.ports import (
    Clock,
    Created,
    OrderRow,
    Outbox,
    PlanStore,
    ScheduleStore,
    TaskStore,
)
from roundsman.scheduler.lookahead import delay_until
from roundsman.scheduler.owed import OwedResult, send_owed
from roundsman.wire.commands import APPLICATION, command_of
from roundsman.wire.messages import status_body

WAITS_FOR_ORDER = 5 * MINUTE
"""How long a cancellation of an order without a task, or a signal to it, is tried again, in ms."""

TAKEN = Problem("orderId", "already used: an order with this id and different content exists")
ENDED = Problem(
    "orderId",
    "its order has ended, and its task was removed: it can neither begin nor be signalled",
)
NO_TASK = Problem(
    "orderId", "has no task: the order was never accepted, or its task's retention is over"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidOrder:
    """A validated order: what to store, and how to process it."""

    order_id: str
    content: Json = field(repr=False)  # contains customer data, which must not appear in logs
    """The order's id and its valid input."""
    content_hash: str
    """Identifies the event: the same id with another hash is another order. It does not depend on
    key order, white space or `processing`."""
    plan: Plan
    options: ProcessingOptions
    run: RecurringRun | None = None
    """The run of a schedule that it is; None for any other order."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """An application's request to cancel its order."""

    order_id: str
    undo: bool
    """Whether effects that may have taken place are compensated first."""
    reason: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignalSent:
    """An application's signal to its order."""

    order_id: str
    name: str
    """The name for which a step waits."""
    data: Json = field(repr=False)
    """What the step that it ends gets as its result."""
    id: str | None = None
    """Identifies the signal; None if its message does."""


@dataclass(frozen=True, slots=True)
class EventOfOrder:
    """An event that begins its order, or, if that is there, is a signal to it alone."""

    signal: SignalSent
    """Its id is the hash of the event, so that the same event is one signal."""
    order: ValidOrder | RejectedOrder
    """The order that it would begin; why it cannot begin one, if it cannot."""

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return self.signal.order_id


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of an order event."""

    created: bool
    """Whether the order was stored; False for a repeated order, a cancellation and a signal."""
    reason: str
    delivered: OwedResult = field(default_factory=OwedResult)
    skipped: bool = False
    """Whether it is a run of a schedule that makes no order."""


@dataclass(kw_only=True, eq=False)
class Submission:
    """Stores orders with their tasks, and sends their commands to the scheduler."""

    tasks: TaskStore
    plans: PlanStore
    outbox: Outbox
    clock: Clock
    shards: int
    search_secret: Callable[[], bytes]
    """Returns the secret of the search keys of masked values."""
    schedules: Callable[[], ScheduleStore]
    """Returns what is stored of the schedules of recurring orders."""
    order_retention: int | None = None
    """How long in ms an order is kept after its task has ended; None keeps orders for ever. No task
    is kept longer than its order."""

    def submit(self, order: ValidOrder) -> Submitted:
        """Store the order and its task, and start the task. Idempotent.

        A repeated order stores nothing, but its `received` status and its commands are sent again:
        the first call may have died before it sent them. Raises RejectedOrder if another order has
        the id, and TryAgain if the message must be delivered again.
        """
        now, options, reason = self.clock(), order.options, "accepted"
        if order.run is not None:
            from roundsman.submission.recurring import decided  # late: few orders recur

            decision = decided(order, order.run, self.schedules(), self.tasks, now)
            if decision.fate is Fate.SKIPPED:
                return Submitted(False, f"skipped: {decision.reason}", skipped=True)
            if decision.fate is Fate.WAITS:
                reason = f"accepted: {decision.reason}"
                options = replace(options, start_at=now + QUEUED_FOR)
        self.plans.put_plan(order.plan)
        limit = self._limit_key(order)
        task = new_task(order.plan, order.order_id, options, now, shards=self.shards, limit=limit)
        if self.order_retention is not None:
            task = replace(task, retain_for=min(task.retain_for, self.order_retention))
        search = self._search_keys(order)
        row = OrderRow(order.order_id, order.content, order.content_hash, now, search=search)
        found = self.tasks.create(row, task)
        if isinstance(found, Created):
            return Submitted(True, reason, self._announce(task))
        if found.order.content_hash != order.content_hash:
            raise RejectedOrder(
                [TAKEN],
                order_id=order.order_id,
                reply_to=order.options.reply_to,
                correlation_id=order.options.correlation_id,
                is_order=True,
            )
        if found.task is None:
            return Submitted(False, "a repeated order; its task has ended and was removed")
        delivered = self._announce_again(found.task)
        return Submitted(False, "a repeated order; nothing is stored", delivered)

    def _search_keys(self, order: ValidOrder) -> tuple[str, ...]:
        """The keys by which the order is found; none if its workflow names no fields for that."""
        plan = order.plan
        if not plan.search:
            return ()
        from roundsman.model.search import search_keys  # late: needed rarely

        return search_keys(plan.search, plan.masked, order.content, self.search_secret)

    def _limit_key(self, order: ValidOrder) -> str | None:
        """The key under which the limit of its workflow counts the order; None if none does.

        Raises RejectedOrder if the limit's expression cannot be evaluated.
        """
        plan = order.plan
        if plan.limit is None:
            return None
        from roundsman.engine.order_limit import limit_key  # late: few workflows have a limit

        try:
            return limit_key(plan.workflow, plan.limit, order.content, self.search_secret)
        except ValueError as error:
            raise RejectedOrder(
                [Problem("limit", str(error))],
                order_id=order.order_id,
                reply_to=order.options.reply_to,
                correlation_id=order.options.correlation_id,
                is_order=True,
            ) from error

    def cancel(
        self,
        asked: CancelAsked,
        message_id: str,
        sender: str | None = None,
        *,
        waited_since: int | None = None,
    ) -> Submitted:
        """Send a Cancel command for the order's task to the scheduler.

        `sender` is the principal that sent the event, as AWS authenticated it; None if it is not
        known. The task's history names it as the sender of the command. `waited_since` is when the
        message was sent (epoch ms), if this is a redelivery of it; else None.

        Idempotent for the same message: `message_id` becomes the command's id, and a command acts
        once. The scheduler decides whether the task can still be cancelled, and stores the result
        in the task's history. Raises RejectedOrder and TryAgain for an order without a task, as
        `_check_has_task` does.
        """
        self._check_has_task(asked.order_id, waited_since)
        source = CommandSource(message_id, APPLICATION, asked.reason, forwarded_for=sender)
        event = Cancel(source, asked.undo)
        self.outbox.send_command(command_of(asked.order_id, event))
        return Submitted(False, "its cancellation was sent to the scheduler")

    def signal(
        self,
        signal: SignalSent,
        message_id: str,
        sender: str | None = None,
        *,
        waited_since: int | None = None,
    ) -> Submitted:
        """Send the signal to the scheduler, as a command about the order's task.

        `sender` and `waited_since` are as in `cancel`. Idempotent for the same id, or for the same
        message if the signal has no id.

        The scheduler decides which step the signal ends. Raises RejectedOrder and TryAgain for an
        order without a task, as `_check_has_task` does.
        """
        self._check_has_task(signal.order_id, waited_since)
        source = CommandSource(signal.id or message_id, APPLICATION, forwarded_for=sender)
        event = Signalled(source, signal.name, signal.data)
        self.outbox.send_command(command_of(signal.order_id, event))
        return Submitted(False, "its signal was sent to the scheduler")

    def begin_or_signal(
        self,
        asked: EventOfOrder,
        message_id: str,
        sender: str | None = None,
        *,
        waited_since: int | None = None,
    ) -> Submitted:
        """Begin the order of the event if there is none, and send the signal to it. Idempotent.

        The arguments are those of `signal`. Raises RejectedOrder if there is no order and the event
        cannot begin one, or if its order has ended and its task was removed; TryAgain as `submit`.
        The scheduler rejects a signal to an order that has ended.
        """
        begun = self._begun(asked, waited_since is not None)
        if begun is not None and not begun.created:
            return begun
        sent = self.signal(asked.signal, message_id, sender)
        return sent if begun is None else replace(begun, reason=f"{begun.reason}; {sent.reason}")

    def _begun(self, asked: EventOfOrder, redelivered: bool) -> Submitted | None:
        """Begin the order; None if it is there.

        If the message died when it had begun the order, that is found, and announced again.
        """
        task = self.tasks.load(asked.order_id, self.clock())
        if task is None and isinstance(asked.order, RejectedOrder):
            raise asked.order
        if task is None and isinstance(asked.order, ValidOrder):
            try:
                return self.submit(asked.order)
            except RejectedOrder:  # another event has begun it
                task = self.tasks.load(asked.order_id, self.clock())
                if task is None:
                    raise RejectedOrder([ENDED], order_id=asked.order_id) from None
        if task is not None and redelivered and task.version == 1:
            self._announce_again(task)
        return None

    def _check_has_task(self, order_id: str, waited_since: int | None) -> None:
        """Raise TryAgain if the order has no task: the order may be on its way.

        A standard queue keeps no order of messages, so a message may overtake the order that it is
        about. Raises RejectedOrder if there is still no task WAITS_FOR_ORDER after the message was
        sent.
        """
        now = self.clock()
        if self.tasks.load(order_id, now) is not None:
            return
        if waited_since is not None and now - waited_since >= WAITS_FOR_ORDER:
            raise RejectedOrder([NO_TASK], order_id=order_id)
        raise TryAgain("the order has no task, and may be on its way")

    def _announce(self, task: Task) -> OwedResult:
        """Send `received`, then Start.

        In this order, the scheduler usually finds nothing owed.
        """
        delivered = self._deliver_received(task)
        self._send_start(task)
        self._send_end(task)
        return delivered

    def _announce_again(self, task: Task) -> OwedResult:
        delivered = OwedResult()
        if any(owed.name == RECEIVED for owed in task.owed):
            delivered = self._deliver_received(task)
        elif task.reply_to is not None:
            self._repeat_received(task, task.reply_to)
        if not task.ended:
            self._send_start(task)
            self._send_end(task)
        return delivered

    def _deliver_received(self, task: Task) -> OwedResult:
        """Send only the owed `received` status.

        Submission cannot send other owed items of an older task: it has no alert topic, and its
        plan may be newer than the task's.
        """
        return send_owed(
            task,
            None,
            seen=0,
            tasks=self.tasks,
            outbox=self.outbox,
            clock=self.clock,
            reporter=None,
        )

    def _repeat_received(self, task: Task, reply_to: str) -> None:
        received = Owed("status", RECEIVED, 1, task.created_at, "")
        try:
            self.outbox.send_status(reply_to, status_body(task, received))
        except TryAgain:
            return  # optional: the status was sent before

    def _send_start(self, task: Task) -> None:
        """Send Start for `start_at`, unless that is later than SQS can delay a message.

        The supervisor then finds the due entry.
        """
        now = self.clock()
        delay = 0 if task.start_at <= now else delay_until(task.start_at, now)
        if delay is not None:
            self.outbox.send_start(task.task_id, delay=delay)

    def _send_end(self, task: Task) -> None:
        """Send an Inspect for `perform_by`, if SQS can delay a message that long.

        A supervisor may read the due entry too late. Best effort: if the Inspect is lost, the
        supervisor finds the due entry.
        """
        delay = delay_until(task.perform_by, self.clock())
        if delay is None:
            return
        try:
            self.outbox.send_inspect(task.task_id, delay=delay)
        except TryAgain:
            return

"""What may go wrong in a stack, how it comes about, and who notices it in each profile, and when.

`docs/explanation/profiles.md` shows this table, and `test_stack_faults` makes each fault happen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import boto3
from botocore.exceptions import ClientError

from tests.moto.watched_stack import WatchedStack

Seen: TypeAlias = tuple[str, int] | None
"""An alarm or an alert, and in how many minutes at most it comes after the fault; None for none."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong, and stays wrong."""

    what: str
    """In words, for the page."""
    begins: Callable[[WatchedStack], None]
    full: Seen
    standard: Seen
    lean: Seen
    then: tuple[str, ...] = field(default=(), kw_only=True)
    """The alarms of `full` that are raised later, or in the same minute."""
    happens_in_lean: bool = field(default=True, kw_only=True)
    """Whether a stack of the profile `lean` has what goes wrong."""

    @property
    def seen(self) -> Mapping[str, Seen]:
        """By profile."""
        return {"full": self.full, "standard": self.standard, "lean": self.lean}


def fails(function: str) -> Callable[[WatchedStack], None]:
    """Let each invocation of the function fail, while an order comes."""

    def begin(world: WatchedStack) -> None:
        world.fails.add(function)
        world.submit()

    return begin


def is_refused(function: str) -> Callable[[WatchedStack], None]:
    """Let Lambda refuse to start the function, while an order comes."""

    def begin(world: WatchedStack) -> None:
        world.is_refused.add(function)
        world.submit()

    return begin


def is_unread(queue: str, priority: str = "normal") -> Callable[[WatchedStack], None]:
    """Let nothing read the queue, while an order of this priority comes."""

    def begin(world: WatchedStack) -> None:
        world.is_unread.add(queue)
        world.submit(processing={"priority": priority})

    return begin


def gets(queue: str, body: str = "{}") -> Callable[[WatchedStack], None]:
    """Put a message into the queue."""
    return lambda world: world.stack.send(queue, body)


def refuses(table: str, calls: str, index: str | None = None) -> Callable[[WatchedStack], None]:
    """Let the table, or its index, refuse all reads or writes, while an order comes."""

    def begin(world: WatchedStack) -> None:
        world.refuse(table, index, writes=calls == "writes")
        world.submit()

    return begin


def is_not_started(world: WatchedStack) -> None:
    """Let nothing start the supervisor."""
    world.is_not_started.add("SupervisorFunction")


def orders_fail(world: WatchedStack) -> None:
    """Let a service refuse an order, after a step that cannot be undone."""
    world.stack.faults({"service": "mail", "status": 400})
    world.submit()


def orders_are_undone(world: WatchedStack) -> None:
    """Let all orders of a small stack be undone."""
    world.submit(6, paymentToken="tok_declined")


def record_is_spoiled(world: WatchedStack) -> None:
    """Let the record of an order lose a value, before the scheduler begins it."""
    world.is_unread.add("SchedulerQueue")
    world.submit()
    world.pass_minutes(1)
    world.stack.dynamodb.update_item(
        TableName=world.stack.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": f"ord-{world.orders}"}},
        UpdateExpression="REMOVE CompleteBy",
    )
    world.is_unread.clear()
    world.begin()


def denied(world: WatchedStack, call: str, function: str) -> None:
    """Let the function have no right to make this call, such as `sns.Publish`."""
    session = boto3.DEFAULT_SESSION
    assert session is not None
    world.stack.redeploy()  # the clients that exist do not see it

    def refuse(**_: object) -> None:
        if world.stack.running == function or not function:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, call)

    session.events.register(f"provide-client-params.{call}", refuse)


def alerts_are_refused(world: WatchedStack) -> None:
    """Let the topic refuse every alert, while an order fails."""
    denied(world, "sns.Publish", "")
    orders_fail(world)


def supervisor_is_denied(world: WatchedStack) -> None:
    """Let the supervisor have no right to read which tasks are due."""
    denied(world, "dynamodb.Query", "SupervisorFunction")


def step_is_unknown(world: WatchedStack) -> None:
    """Let an agent be asked for a step that its code does not know."""
    world.unknown_step = "reserve_stock"
    world.submit()


def account_is_full(world: WatchedStack) -> None:
    """Let the functions of the account claim nearly all of its instances."""
    world.claimed = 900


def refuses_others(
    table: str, calls: str, index: str | None = None
) -> Callable[[WatchedStack], None]:
    """Let the table refuse calls that no function makes while orders go well."""
    writes = calls == "writes"
    return lambda world: world.refuse(table, index, writes=writes, asked_by_others=True)


def history_refuses_writes(world: WatchedStack) -> None:
    """Let HistoryTable refuse the writes of others, and those of an order that is to be undone."""
    world.refuse("HistoryTable", writes=True, asked_by_others=True)
    world.submit(paymentToken="tok_declined")


FAULTS = (
    Fault(
        "The supervisor is not started",
        is_not_started,
        ("SupervisorHasNotRunAlarm", 5),
        ("SupervisorHasNotRunAlarm", 5),
        ("SupervisorAlarm", 5),
    ),
    Fault(
        "The supervisor fails at each start",
        fails("SupervisorFunction"),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorAlarm", 3),
    ),
    Fault(
        "Lambda refuses to start the supervisor",
        is_refused("SupervisorFunction"),
        ("SupervisorThrottlesAlarm", 3),
        ("SupervisorThrottlesAlarm", 3),
        ("SupervisorAlarm", 5),
        then=("SupervisorHasNotRunAlarm",),
    ),
    Fault(
        "A right of the supervisor is missing",
        supervisor_is_denied,
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorAlarm", 3),
        then=("TroubledTasksAlarm",),
    ),
    Fault(
        "The submission function fails at each message",
        fails("SubmissionFunction"),
        ("SubmissionErrorsAlarm", 1),
        ("SubmissionErrorsAlarm", 1),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "Lambda refuses to start the submission function",
        is_refused("SubmissionFunction"),
        ("SubmissionThrottlesAlarm", 3),
        ("SubmissionThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
        then=("SubmissionBacklogAlarm",),
    ),
    Fault(
        "Nothing reads SubmissionQueue",
        is_unread("SubmissionQueue"),
        ("SubmissionBacklogAlarm", 23),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "The scheduler function fails at each message",
        fails("SchedulerFunction"),
        ("SchedulerErrorsAlarm", 1),
        ("SchedulerErrorsAlarm", 1),
        ("stack_fault behind", 8),
        then=("SchedulerBehindAlarm",),
    ),
    Fault(
        "Lambda refuses to start the scheduler function",
        is_refused("SchedulerFunction"),
        ("SchedulerThrottlesAlarm", 3),
        ("SchedulerThrottlesAlarm", 3),
        ("stack_fault behind", 8),
        then=("SchedulerBehindAlarm", "SchedulerBacklogAlarm"),
    ),
    Fault(
        "Nothing reads SchedulerQueue",
        is_unread("SchedulerQueue"),
        ("SchedulerBehindAlarm", 8),
        ("stack_fault behind", 8),
        ("stack_fault behind", 8),
        then=("SchedulerBacklogAlarm",),
    ),
    Fault(
        "Nothing reads the reply queue of an agent",
        is_unread("InventoryReplyQueue"),
        ("SchedulerBehindAlarm", 7),
        ("stack_fault behind", 7),
        ("stack_fault behind", 7),
    ),
    Fault(
        "The function of an agent fails at each request",
        fails("InventoryFunction"),
        ("<Agent>ErrorsAlarm", 1),
        ("<Agent>ErrorsAlarm", 1),
        ("unexpected_error", 16),
    ),
    Fault(
        "Lambda refuses to start the function of an agent",
        is_refused("InventoryFunction"),
        ("<Agent>ThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "Nothing reads the request queue of an agent",
        is_unread("InventoryRequestQueue"),
        ("<Agent>RequestBacklogAlarm", 23),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "Nothing reads the queue of urgent requests of an agent",
        is_unread("InventoryUrgentRequestQueue", priority="urgent"),
        ("<Agent>UrgentRequestBacklogAlarm", 23),
        ("stack_fault backlog", 21),
        None,
        happens_in_lean=False,
    ),
    Fault(
        "An order event fails every delivery",
        gets("SubmissionDeadLetterQueue"),
        ("SubmissionDeadLettersAlarm", 1),
        ("stack_fault dead_letters", 1),
        ("stack_fault dead_letters", 1),
    ),
    Fault(
        "A command fails every delivery",
        gets("SchedulerDeadLetterQueue"),
        ("SchedulerDeadLettersAlarm", 1),
        ("stack_fault dead_letters", 1),
        ("stack_fault dead_letters", 1),
    ),
    Fault(
        "A request fails every delivery",
        gets("PaymentRequestDeadLetterQueue"),
        ("<Agent>RequestDeadLettersAlarm", 1),
        ("stack_fault dead_letters", 5),
        ("stack_fault dead_letters", 5),
    ),
    Fault(
        "An urgent request fails every delivery",
        gets("PaymentUrgentRequestDeadLetterQueue"),
        ("<Agent>UrgentRequestDeadLettersAlarm", 1),
        ("stack_fault dead_letters", 5),
        None,
        happens_in_lean=False,
    ),
    Fault(
        "A reply fails every delivery",
        gets("PaymentReplyDeadLetterQueue"),
        ("<Agent>ReplyDeadLettersAlarm", 1),
        ("stack_fault dead_letters", 5),
        ("stack_fault dead_letters", 5),
    ),
    Fault(
        "A message can never be handled",
        gets("SubmissionQueue", "no order"),
        ("RejectedMessagesAlarm", 1),
        ("stack_fault rejected", 1),
        ("stack_fault rejected", 1),
    ),
    Fault(
        "An order is archived",
        orders_fail,
        ("task_archived", 1),
        ("task_archived", 1),
        ("task_archived", 1),
        then=("ArchivedTasksAlarm",),
    ),
    Fault(
        "All of six orders are undone",
        orders_are_undone,
        ("UndoneShareAlarm", 1),
        ("UndoneShareAlarm", 1),
        ("orders_undone", 1),
    ),
    Fault(
        "The record of an order cannot be handled",
        record_is_spoiled,
        ("task_unreadable", 1),
        ("task_unreadable", 1),
        ("task_unreadable", 1),
        then=("HandlerErrorsAlarm",),
    ),
    Fault(
        "An agent does not know a step",
        step_is_unknown,
        ("StepsWithoutHandlerAlarm", 1),
        ("StepsWithoutHandlerAlarm", 1),
        ("task_archived", 39),
    ),
    Fault(
        "Alerts are not published",
        alerts_are_refused,
        ("AlertsFailedAlarm", 1),
        ("AlertsFailedAlarm", 1),
        ("SupervisorAlarm", 3),
    ),
    Fault(
        "The account's instances are nearly used up",
        account_is_full,
        ("AccountConcurrencyAlarm", 3),
        ("AccountConcurrencyAlarm", 3),
        None,
    ),
    Fault(
        "OrdersTable refuses reads",
        refuses("OrdersTable", "reads"),
        ("OrdersReadThrottlesAlarm", 4),
        ("unexpected_error", 3),
        ("unexpected_error", 3),
    ),
    Fault(
        "OrdersTable refuses writes",
        refuses("OrdersTable", "writes"),
        ("OrdersWriteThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "TasksTable refuses reads",
        refuses("TasksTable", "reads"),
        ("TasksReadThrottlesAlarm", 3),
        ("TasksReadThrottlesAlarm", 3),
        ("stack_fault late", 13),
        then=("SupervisorLagAlarm",),
    ),
    Fault(
        "TasksTable refuses writes",
        refuses("TasksTable", "writes"),
        ("TasksWriteThrottlesAlarm", 3),
        ("TasksWriteThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "The index of due tasks refuses reads",
        refuses("TasksTable", "reads", "due"),
        ("DueIndexReadThrottlesAlarm", 3),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorAlarm", 3),
    ),
    Fault(
        "The index of due tasks refuses writes",
        refuses("TasksTable", "writes", "due"),
        ("DueIndexWriteThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "The index of failed tasks refuses reads",
        refuses_others("TasksTable", "reads", "failures"),
        ("FailuresIndexReadThrottlesAlarm", 3),
        None,
        None,
    ),
    Fault(
        "The index of failed tasks refuses writes",
        refuses("TasksTable", "writes", "failures"),
        ("FailuresIndexWriteThrottlesAlarm", 3),
        ("stack_fault backlog", 21),
        ("stack_fault backlog", 21),
    ),
    Fault(
        "The index of parked tasks refuses reads",
        refuses_others("TasksTable", "reads", "parked"),
        ("ParkedIndexReadThrottlesAlarm", 3),
        None,
        None,
    ),
    Fault(
        "The index of parked tasks refuses writes",
        refuses_others("TasksTable", "writes", "parked"),
        ("ParkedIndexWriteThrottlesAlarm", 3),
        None,
        None,
    ),
    Fault(
        "ControlTable refuses reads",
        refuses("ControlTable", "reads"),
        ("ControlReadThrottlesAlarm", 3),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorAlarm", 3),
        then=("AlertsFailedAlarm",),
    ),
    Fault(
        "ControlTable refuses writes",
        refuses("ControlTable", "writes"),
        ("ControlWriteThrottlesAlarm", 3),
        ("SupervisorErrorsAlarm", 1),
        ("SupervisorAlarm", 3),
    ),
    Fault(
        "HistoryTable refuses reads",
        refuses_others("HistoryTable", "reads"),
        ("HistoryReadThrottlesAlarm", 3),
        None,
        None,
    ),
    Fault(
        "HistoryTable refuses writes",
        history_refuses_writes,
        ("HistoryWriteThrottlesAlarm", 3),
        ("stack_fault behind", 7),
        ("stack_fault behind", 7),
    ),
)

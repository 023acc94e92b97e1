"""What happens to an order in each scenario, and how it must end whatever fails on the way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from roundsman import Retry, Step, Undo, Workflow
from roundsman.definition.workflow import Compensation
from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.states import TaskState
from roundsman.wire.commands import command_of
from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, order
from workflows.order import with_total

ORDER = "ord-1"
A_WHILE = timedelta(minutes=5)  # five times what a message of the scheduler is hidden
NOWHERE = {
    "name": "A. Reader",
    "street": "1 Main St",
    "city": "X",
    "postalCode": "1",
    "country": "XX",
}
RESERVED = {"inventory perform": 1}
CHARGED = {**RESERVED, "payment perform": 1}
SHIPPED = {**CHARGED, "shipping perform": 1}
UNDONE_WHOLE = {**CHARGED, "inventory undo": 1, "payment undo": 1}

# The same steps as the agents know them, the first two of them at once.
FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))
TWICE = Retry(max_attempts=3, first_delay=timedelta(seconds=2))
reserve = Step(
    name="reserve_stock",
    agent="inventory",
    complete_within=A_WHILE,
    retry=TWICE,
    compensation=FENCED,
)
charge = Step(
    name="charge_card", agent="payment", complete_within=A_WHILE, retry=TWICE, compensation=FENCED
)
ship = Step(
    name="create_shipment",
    agent="shipping",
    complete_within=A_WHILE,
    after=(reserve, charge),
    retry=Retry(max_attempts=3),
    compensation=FENCED,
)
confirm = Step(
    name="send_confirmation",
    agent="mail",
    complete_within=A_WHILE,
    after=(ship,),
    when="input.total > `1000`",
    retry=TWICE,
)
both_at_once = Workflow(
    name="both_at_once",
    input=with_total,
    steps=(reserve, charge, ship, confirm),
    complete_within=timedelta(hours=1),
    on_failure=Undo(),
    retain_for=timedelta(days=7),
)
WORKFLOWS = {both_at_once.name: both_at_once}


Story = Callable[[Stack], None]


def ended(stack: Stack, order_id: str = ORDER) -> bool:
    """Whether the order has an end, and nothing is owed about it."""
    task = stack.store.load(order_id, stack.clock())
    return task is not None and task.ended and not task.owed


def in_state(stack: Stack, state: TaskState) -> bool:
    task = stack.store.load(ORDER, stack.clock())
    return task is not None and task.state is state and not task.owed


def goes_by_itself(stack: Stack) -> None:
    """Nobody does anything."""


def charge_failed(stack: Stack) -> bool:
    """Whether an attempt of the charge has failed; a fault may let an earlier step wait too."""
    task = stack.store.load(ORDER, stack.clock())
    return task is not None and task.step("charge_card").failure_count > 0


def is_cancelled(stack: Stack) -> None:
    """Its application cancels it while its charge waits for the second attempt."""
    stack.pass_time_until(lambda: in_state(stack, TaskState.RETRY) and charge_failed(stack))
    stack.submit({"orderId": ORDER, "cancel": {"undo": True, "reason": "changed my mind"}})


def is_resubmitted(stack: Stack) -> None:
    """An operator has the mail service repaired, and sends it on."""
    stack.pass_time_until(lambda: in_state(stack, TaskState.ARCHIVED))
    stack.faults()
    asked = CommandSource(command_id="c-1", by="amy", reason="repaired")
    stack.send("SchedulerQueue", command_of(ORDER, Resubmit(asked)).body())
    stack.pass_time_until(lambda: in_state(stack, TaskState.COMPLETED))


@dataclass(frozen=True)
class Scenario:
    """An order, what meets it, and its end. `takes` (ms) is what its first effects take."""

    end: TaskState
    effects: Mapping[str, int]
    content: Mapping[str, object] = field(default_factory=dict)
    processing: Mapping[str, object] = field(default_factory=dict)
    rules: tuple[Mapping[str, object], ...] = ()
    takes: tuple[int, ...] = ()
    story: Story = goes_by_itself
    parameters: Mapping[str, str] = field(default_factory=dict)
    statuses: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Orders that come with it, each to complete whatever meets the others."""
    patient: bool = False
    """Redelivery comes before any complete-by: no fault of the engine costs an attempt."""

    def event(self, reply_to: str) -> dict[str, object]:
        """The order's event."""
        return {**order(ORDER, replyTo=reply_to, **self.processing), **self.content}


def once(operation: str, **fault: object) -> Mapping[str, object]:
    """A fault that the first call of that kind meets."""
    return {"operation": operation, "times": 1, **fault}


def statuses_until(last: str, *before: str) -> tuple[str, ...]:
    return ("received", "started", *before, last)


COMPLETED, UNDONE = statuses_until("completed"), statuses_until("undone")
DECLINED = {"paymentToken": "tok_declined"}
ARCHIVED = ("task_archived",)

SCENARIOS: Mapping[str, Scenario] = {
    "success": Scenario(TaskState.COMPLETED, ALL_EFFECTS, statuses=COMPLETED),
    "a transient fault": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        rules=(once("POST /charges", status=503, retryAfter=20),),
        statuses=COMPLETED,
    ),
    "a permanent fault": Scenario(
        TaskState.UNDONE,
        {"inventory perform": 1, "inventory undo": 1},
        content=DECLINED,
        statuses=UNDONE,
    ),
    "a permanent fault of the first step": Scenario(
        TaskState.UNDONE,
        {},
        content={"lines": [{"sku": "OUT-1", "quantity": 1, "unitPrice": "5.00"}]},
        statuses=UNDONE,
    ),
    "a lost reply": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        rules=(once("POST /charges", loseAnswer=True),),
        statuses=COMPLETED,
    ),
    # The mail's: what nothing undoes has no time to wait, and its agent falls silent.
    "a call that hangs": Scenario(
        TaskState.COMPLETED, ALL_EFFECTS, takes=(*(6 * (0,)), 31_000), statuses=COMPLETED
    ),
    "an undo": Scenario(
        TaskState.UNDONE, UNDONE_WHOLE, content={"shippingAddress": NOWHERE}, statuses=UNDONE
    ),
    "an undo that fails at first": Scenario(
        TaskState.UNDONE,
        UNDONE_WHOLE,
        content={"shippingAddress": NOWHERE},
        rules=(
            once("POST /refunds", status=503),
            once("DELETE /reservations", loseAnswer=True),
        ),
        statuses=UNDONE,
    ),
    "an undo that fails for good": Scenario(
        TaskState.ARCHIVED,
        {**CHARGED, "inventory undo": 1},
        content={"shippingAddress": NOWHERE},
        rules=({"operation": "POST /refunds", "status": 400, "body": {"error": "TooLate"}},),
        statuses=statuses_until("failed"),
        alerts=ARCHIVED,
    ),
    "a scheduled start": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        processing={"processIn": 1_000},
        parameters={"SupervisorIntervalSeconds": "600"},
        statuses=COMPLETED,
    ),
    "a cancellation": Scenario(
        TaskState.CANCELLED,
        {"inventory perform": 1, "inventory undo": 1},
        # Each time: an attempt whose reply is lost must not find it mended, and never wait.
        rules=({"operation": "POST /charges", "status": 503, "retryAfter": 600},),
        story=is_cancelled,
        statuses=statuses_until("cancelled"),
    ),
    "a resubmission": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        rules=({"operation": "POST /messages", "status": 400, "body": {"error": "NoMailbox"}},),
        story=is_resubmitted,
        statuses=statuses_until("completed", "failed"),
        alerts=ARCHIVED,
    ),
    "parallel steps": Scenario(
        TaskState.COMPLETED,
        SHIPPED,
        processing={"workflow": "both_at_once"},
        statuses=COMPLETED,
        patient=True,
    ),
    "parallel steps of which one fails": Scenario(
        TaskState.UNDONE,
        {"inventory perform": 1, "inventory undo": 1},
        content=DECLINED,
        processing={"workflow": "both_at_once"},
        statuses=UNDONE,
    ),
    "a service that is down for a while": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        rules=(once("POST /charges", status=503),),
        parameters={"Payment.BreakerFailures": "1", "Payment.CallsPerSecond": "100"},
        statuses=COMPLETED,
    ),
    "a batch of orders": Scenario(
        TaskState.COMPLETED,
        ALL_EFFECTS,
        rules=(once("POST /charges", status=503),),
        parameters={
            f"{agent}.BatchSize": "10" for agent in ("Inventory", "Payment", "Shipping", "Mail")
        },
        statuses=COMPLETED,
        beside=("ord-2", "ord-3", "ord-4"),
    ),
}

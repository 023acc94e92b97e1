"""What happens in the first look: a shop takes orders, and its payment service fails some of them.

The past of the shop is made at once, on a clock that skips its waits. Then the world follows the
clock of the machine.
"""

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Final

from roundsman.agents.agent import Agent
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import Compensation, Step, Workflow
from roundsman.errors import PermanentError
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.wire.alert import Alert
from roundsman_testing.world.aws import WorldAws
from roundsman_testing.world.services import FOR_EVER
from roundsman_testing.world.world import World

PAYMENT: Final = "payment"
"""The agent whose service fails."""

reserve_stock = Step(
    name="reserve_stock",
    agent="inventory",
    complete_within=timedelta(seconds=30),
    compensation=Compensation(),
)
charge_card = Step(
    name="charge_card",
    agent=PAYMENT,
    after=(reserve_stock,),
    complete_within=timedelta(seconds=60),
    compensation=Compensation(),
)
create_shipment = Step(
    name="create_shipment",
    agent="shipping",
    after=(charge_card,),
    complete_within=timedelta(minutes=2),
    compensation=Compensation(),
)
send_confirmation = Step(
    name="send_confirmation",
    agent="mail",
    after=(create_shipment,),
    complete_within=timedelta(seconds=30),
)
purchase = Workflow(
    name="purchase",
    steps=(reserve_stock, charge_card, create_shipment, send_confirmation),
    complete_within=timedelta(hours=2),
    retain_for=timedelta(days=7),
)
"""A failed order of it is archived: it stays as it is until a person decides."""

PAST = 2 * 60 * MINUTE
"""How long before the present the first order came, in ms."""
BETWEEN_ORDERS = 4 * MINUTE
FAILS_SINCE = 8 * MINUTE
"""How long before the present the payment service began to fail, in ms."""
BETWEEN_FAILURES = 50 * SECOND
BETWEEN_NEW_ORDERS = 15 * SECOND
"""The time from one order to the next while somebody looks, in ms."""
CALL = timedelta(milliseconds=1500)
"""How long a call of a service takes: long enough to be seen on the page of an order."""
ENDED: Final = frozenset({TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED})
"""The states in which an order needs nobody any more."""
SUPERVISION = timedelta(seconds=2)
"""The time between two passes of the supervisor, which also carries out bulk runs."""


class PaymentService:
    """A payment service that charges cards, unless it does not know its own merchant."""

    def __init__(self) -> None:
        """Make the service; it works."""
        self.knows_merchant = True

    def charge(self, key: str) -> str:
        """Charge a card under this key. Returns the id of the charge. Raises PermanentError."""
        if not self.knows_merchant:
            raise PermanentError("UnknownMerchant", "POST answered 403: the merchant is not known")
        return f"ch-{key[-6:]}"


class Shop:
    """A world with a shop, from its past to the present; `clock` is the present in epoch ms.

    `on_alert` is called with the subject of each alert of the present. The methods may be called in
    any thread.
    """

    def __init__(self, clock: Callable[[], int], on_alert: Callable[[str], None]) -> None:
        """Make the shop with its past, which ends with orders that failed."""
        self._clock = clock
        self.service = PaymentService()
        now = clock()
        self.world = World(
            purchase,
            agents=[_payment_agent(self.service)],
            interval=SUPERVISION,
            starts_at=now - PAST,
        )
        for step in purchase.steps:
            self.world.on(step.name).takes(CALL, FOR_EVER)
        self._numbers = count(1001)
        self._next_order_at = now + BETWEEN_NEW_ORDERS
        self._make_past(now)
        published = self.world.post.on_alert

        def publish(alert: Alert) -> None:
            published(alert)
            on_alert(alert.subject)

        self.world.post.on_alert = publish
        self.aws = WorldAws(self.world)

    def _make_past(self, now: int) -> None:
        times = [*range(now - PAST, now - FAILS_SINCE, BETWEEN_ORDERS)]
        failing = now - FAILS_SINCE
        times += range(failing, now - BETWEEN_FAILURES, BETWEEN_FAILURES)
        for at in times:
            self.world.follow(at)
            self.service.knows_merchant = at < failing
            self._take_order()
        self.world.follow(now)

    def _take_order(self) -> None:
        number = next(self._numbers)
        self.world.submit(
            {"orderId": f"ord-{number}", "customer": f"c-{number % 7}", "cents": 3980}
        )

    def go_on(self) -> None:
        """Let everything happen that is due now, and take a new order from time to time."""
        with self.aws.lock:
            now = self._clock()
            while self._next_order_at <= now:
                self.world.follow(self._next_order_at)
                self._take_order()
                self._next_order_at += BETWEEN_NEW_ORDERS
            self.world.follow(now)

    def run(self, stop: threading.Event, every: float = 0.1) -> None:
        """Go on every so many seconds until `stop` is set."""
        while not stop.wait(every):
            self.go_on()

    def repair(self) -> None:
        """Repair the payment service, as its owner does."""
        with self.aws.lock:
            self.service.knows_merchant = True

    # --- what the data say ----------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether the payment agent is held."""
        with self.aws.lock:
            return any(hold.agent == PAYMENT for hold in self.world.processes.holds.holds())

    def failed(self) -> dict[str, str]:
        """The failure group of each order that waits for a person, by its id."""
        with self.aws.lock:
            tasks = self.world.processes.store.tasks()
        return {
            task.task_id: task.failure or "" for task in tasks if task.state is TaskState.ARCHIVED
        }

    def completed(self, orders: Iterable[str]) -> list[str]:
        """Those of the orders that are Completed, with the effect of each step once."""
        every = sorted(step.name for step in purchase.steps)
        with self.aws.lock:
            tasks = {task.task_id: task for task in self.world.processes.store.tasks()}
            return [
                order
                for order in orders
                if order in tasks
                and tasks[order].state is TaskState.COMPLETED
                and sorted(self.world.standing(order)) == every
            ]

    def open(self, orders: Iterable[str]) -> list[str]:
        """Those of the orders that have not ended, or that wait for a person."""
        wanted = set(orders)
        with self.aws.lock:
            tasks = self.world.processes.store.tasks()
        return [
            task.task_id for task in tasks if task.task_id in wanted and task.state not in ENDED
        ]


def _payment_agent(service: PaymentService) -> Agent:
    agent = Agent(PAYMENT)

    @agent.performs(charge_card)
    def charge(request: StepRequest) -> Json:
        return {"chargeId": service.charge(request.idempotency_key)}

    @agent.compensates(charge_card)
    def refund(_request: StepRequest) -> None:
        return None

    return agent

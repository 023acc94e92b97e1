"""An incident for tests of the deployed stack: payment declines what it should take.

The stack is a project's copy in which nothing waits for minutes: the supervisor looks at failure
groups every few seconds, and the alert comes when all orders are undone, so that it always names
the same number of them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from roundsman_dev.local import LocalAws
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import SUPERVISOR_INTERVAL, DeployedStack
from tests.emulator.helpers import FEWEST, PATIENCE, set_faults, states_of, submit_many
from tests.emulator.projects import WORKFLOWS, copied, replace
from tests.emulator.test_under_fire import OPERATORS
from tests.moto.orders import order

WORKFLOW = WORKFLOWS / "order_fulfilment.py"
WITHIN = "complete_within=timedelta("
INVENTORY = f'"inventory",\n    {WITHIN}'
MAIL = f"after=(create_shipment,),\n    {WITHIN}"
DECLINES = {"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}}
LONG = 2 * PATIENCE  # seconds; only ever used up when something is broken


AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
PARAMETERS = {
    "SupervisorIntervalSeconds": SUPERVISOR_INTERVAL,
    # A slow machine is only slow: nothing runs out of time.
    "Engine.SubmissionTimeoutSeconds": 20,
    "Engine.SchedulerTimeoutSeconds": 20,
    # As few instances as can be: what waits is then taken in batches, at a tenth of the cost.
    "Engine.SubmissionConcurrency": FEWEST,
    "Engine.SchedulerConcurrency": FEWEST,
    **{f"{block}.Concurrency": FEWEST for block in AGENTS},
    **{f"{block}.UrgentConcurrency": FEWEST for block in AGENTS},
}
AT_ONCE = 50  # orders: what a slow machine is given at a time, so that none is ever overdue

CORE = Path("layers") / "core" / "roundsman"
GROUP = CORE / "alerts" / "group.py"
DIFFERENT = (
    # What the supervisor waits between two looks, so that nobody waits for it here.
    (GROUP, "MIN_COUNT_INTERVAL = 50 * SECOND", "MIN_COUNT_INTERVAL = 4 * SECOND"),
    (GROUP, "LONGEST_BETWEEN_LOOKS = 10 * MINUTE", "LONGEST_BETWEEN_LOOKS = 4 * SECOND"),
    (GROUP, "CLEAR_FOR = 5 * MINUTE", "CLEAR_FOR = 5 * SECOND"),
    # The queue of the operators here gets the words that a mailbox gets.
    (CORE / "wire" / "limits.py", 'versions["email"]', 'versions["sqs"]'),
    # No step is overdue while it waits for a slow machine.
    (WORKFLOW, f"{INVENTORY}seconds=30)", f"{INVENTORY}minutes=14)"),
    (WORKFLOW, f"{WITHIN}seconds=60)", f"{WITHIN}minutes=14)"),
    (WORKFLOW, f"{WITHIN}minutes=2)", f"{WITHIN}minutes=14)"),
    (WORKFLOW, f"{MAIL}seconds=30)", f"{MAIL}minutes=14)"),
)
"""How the stack of this test differs from the project: a file, what it says, and what instead."""


@contextmanager
def incident_stack(project: Path, orders: int) -> Iterator[DeployedStack]:
    """Deploy the stack from a copy of the project; it alerts when so many orders are undone."""
    copied(project)
    for file, key, instead in DIFFERENT:
        replace(project / file, key, instead)
    # By default the alert comes at 20 orders.
    parameters = {**PARAMETERS, "Engine.UndoneAlertCount": orders}
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0,
            services=services.url,
            parameters={name: str(value) for name, value in parameters.items()},
            project=project,
        ) as aws,
    ):
        yield DeployedStack(aws, services)


def states(stack: DeployedStack, orders: Sequence[str]) -> Counter[str]:
    """How many of the orders are in which state."""
    found: dict[str, str] = {}
    for first in range(0, len(orders), 100):
        found |= states_of(stack, orders[first : first + 100])
    return Counter(found.values())


def _is_so_far(stack: DeployedStack, orders: Sequence[str], wanted: dict[str, int]) -> bool:
    return states(stack, orders) == wanted


def decline(stack: DeployedStack, orders: Sequence[str]) -> None:
    """Payment declines these orders, and all that come, until the faults are set anew."""
    set_faults(stack, DECLINES)
    for first in range(0, len(orders), AT_ONCE):
        submit_many(stack, [order(name) for name in orders[first : first + AT_ONCE]])
        so_far = {"Undone": min(first + AT_ONCE, len(orders))}
        undone = partial(_is_so_far, stack, orders, so_far)
        stack.wait_for("these to be undone", undone, LONG, every=0.5)


@dataclass
class Inbox:
    """What came to the operators, as a mailbox gets it."""

    stack: DeployedStack
    read: list[dict[str, str]] = field(default_factory=list)

    def wait(self, **fields: str) -> dict[str, str]:
        """The first alert with these attributes: its subject and its words."""
        found: list[dict[str, str]] = []

        def came() -> bool:
            self._fetch()
            found[:] = [one for one in self.read if fields.items() <= one.items()]
            return bool(found)

        self.stack.wait_for(f"an alert that says {fields}", came, LONG, every=0.5)
        return found[0]

    def _fetch(self) -> None:
        url = self.stack.sqs.get_queue_url(QueueName=OPERATORS)["QueueUrl"]
        answer = self.stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            self.stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            alert = json.loads(message["Body"])
            attributes = {name: one["Value"] for name, one in alert["MessageAttributes"].items()}
            self.read.append({"subject": alert["Subject"], "words": alert["Message"], **attributes})

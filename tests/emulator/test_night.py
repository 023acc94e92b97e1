"""docs/runbook/night.md: payment declines 200 orders by mistake; in the end all are Completed.

Each command of the page is run again here, on the deployed stack, and the services' ledger says
what really happened. REWRITE_PAGES=1 writes the page's blocks instead of comparing them.
"""

import faulthandler
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from roundsman.testing.remote_services import RemoteServices
from roundsman_console.local import LocalAws
from tests.console.operations_page import NIGHT
from tests.emulator.conftest import SUPERVISOR_INTERVAL, DeployedStack
from tests.emulator.helpers import FEWEST, PATIENCE, is_in, set_faults, states_of, submit_many
from tests.emulator.projects import WORKFLOWS, copied, replace
from tests.emulator.recording import Recording
from tests.emulator.test_under_fire import OPERATORS, subscribe
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

ORDERS = [f"ord-{number}" for number in range(2001, 2201)]
LATE = "ord-2201"  # comes while payment is held
WORKFLOW = WORKFLOWS / "order_fulfilment.py"
WITHIN = "complete_within=timedelta("
INVENTORY = f'"inventory",\n    {WITHIN}'
MAIL = f"after=(create_shipment,),\n    {WITHIN}"
DECLINES = {"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}}
LONG = 2 * PATIENCE  # seconds; only ever used up when something is broken

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
PARAMETERS = {
    "SupervisorIntervalSeconds": SUPERVISOR_INTERVAL,
    # The alert says the same number each time; by default it comes at 20.
    "Engine.UndoneAlertCount": len(ORDERS),
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


@pytest.fixture(scope="module")
def night(
    session_without_real_aws: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedStack]:
    """A stack of its own, so that no other test's trouble is in the recording."""
    # A test's bound is ten minutes; a busy machine may need more for this, whose waits have theirs.
    faulthandler.cancel_dump_traceback_later()
    project = copied(tmp_path_factory.mktemp("night") / "project")
    for file, said, instead in DIFFERENT:
        replace(project / file, said, instead)
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0,
            services=services.url,
            parameters={name: str(value) for name, value in PARAMETERS.items()},
            project=project,
        ) as aws,
    ):
        yield DeployedStack(aws, services)


def states(stack: DeployedStack) -> Counter[str]:
    """How many of the orders are in which state."""
    found: dict[str, str] = {}
    for first in range(0, len(ORDERS), 100):
        found |= states_of(stack, ORDERS[first : first + 100])
    return Counter(found.values())


def is_so_far(stack: DeployedStack, wanted: dict[str, int]) -> bool:
    return states(stack) == wanted


@dataclass
class Inbox:
    """What came to the operators, as a mailbox gets it."""

    stack: DeployedStack
    read: list[dict[str, str]] = field(default_factory=list)

    def wait(self, **said: str) -> dict[str, str]:
        """The first alert with these attributes: its subject and its words."""
        found: list[dict[str, str]] = []

        def came() -> bool:
            self._fetch()
            found[:] = [one for one in self.read if said.items() <= one.items()]
            return bool(found)

        self.stack.wait_for(f"an alert that says {said}", came, LONG, every=0.5)
        return found[0]

    def _fetch(self) -> None:
        url = self.stack.sqs.get_queue_url(QueueName=OPERATORS)["QueueUrl"]
        answer = self.stack.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            self.stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            alert = json.loads(message["Body"])
            attributes = {name: one["Value"] for name, one in alert["MessageAttributes"].items()}
            self.read.append({"subject": alert["Subject"], "words": alert["Message"], **attributes})


def test_two_hundred_orders_declined_by_mistake_are_all_completed(night: DeployedStack) -> None:
    subscribe(night)
    told, inbox = Recording(night), Inbox(night)
    decline(night, told, inbox)
    group, sample = look(night, told)
    hold(night, told)
    mend(night, told)
    go_on(night, told, group, sample)
    check_effects(night)
    clear(told, inbox)
    told.compare(NIGHT)


def decline(stack: DeployedStack, told: Recording, inbox: Inbox) -> None:
    """Payment declines what it should take, until somebody is woken."""
    set_faults(stack, DECLINES)
    for first in range(0, len(ORDERS), AT_ONCE):
        submit_many(stack, [order(name) for name in ORDERS[first : first + AT_ONCE]])
        so_far = {"Undone": min(first + AT_ONCE, len(ORDERS))}
        undone = partial(is_so_far, stack, so_far)
        stack.wait_for("these to be undone", undone, LONG, every=0.5)
    show_mail(told, "alert", inbox.wait(kind="orders_undone", news="first"))


def show_mail(told: Recording, block: str, alert: dict[str, str]) -> None:
    told.says(block, f"Subject: {alert['subject']}", "", *alert["words"].splitlines())


def look(stack: DeployedStack, told: Recording) -> tuple[str, str]:
    """What failed, why, and how many it hits; the group and one of its orders."""
    told.types("look", "roundsman alerts")
    told.types("look", "roundsman groups")
    [group] = cast("list[dict[str, object]]", told.reads("groups", "ls")["groups"])
    name = str(group["group"])
    told.types("group", f"roundsman groups show {name}")
    shown = told.reads("groups", "show", name)
    sample = str(cast("list[dict[str, object]]", shown["samples"])[0]["orderId"])
    told.types("order", f"roundsman why {sample}")
    told.types("order", f"roundsman show {sample}")
    return name, sample


def hold(stack: DeployedStack, told: Recording) -> None:
    """What is new waits and does not fail."""
    told.types("hold", 'roundsman hold payment --for 30m --yes --reason "it declines every card"')
    told.says("hold", "# another order comes")
    stack.submit(order(LATE))
    stack.wait_for("the order to be held", is_in(stack, "Retry", LATE), LONG, every=0.5)
    told.types("hold", f"roundsman why {LATE}")


def mend(stack: DeployedStack, told: Recording) -> None:
    """Those who run the service have found what it was."""
    set_faults(stack)
    told.says("mended", "# the payment service is mended")
    told.types("mended", 'roundsman release payment --reason "the acquirer put its rule right"')


def go_on(stack: DeployedStack, told: Recording, group: str, sample: str) -> None:
    """All that were declined begin anew: shown first, then a few, then the rest."""
    command = f'roundsman resubmit --group {group} --again --reason "declined by mistake"'
    told.types("dry-run", command)
    told.types("run", f"{command} --canary 5 --rate 20 --go --yes")
    [run] = cast("list[dict[str, object]]", told.reads("bulk", "ls")["runs"])
    told.types("audit", f"roundsman bulk show {run['runId']}")
    told.types("audit", f"roundsman show {sample}")
    assert states(stack) == {"Completed": len(ORDERS)}


def check_effects(stack: DeployedStack) -> None:
    """By the services' own ledger: what stands of each order is each effect once."""
    for name in ORDERS:
        found = effects_of(stack.services, name)
        assert found == {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}, name
    stack.wait_for("the order that waited", is_in(stack, "Completed", LATE), LONG, every=0.5)
    assert effects_of(stack.services, LATE) == ALL_EFFECTS


def clear(told: Recording, inbox: Inbox) -> None:
    """The supervisor tells that it is over."""
    # How many are left in the group as it is told depends on how fast all this is.
    mail = inbox.wait(kind="orders_undone", news="clear")
    told.says("clear", f"Subject: {mail['subject']}", "", mail["words"].splitlines()[0])
    told.types("clear", "roundsman alerts")

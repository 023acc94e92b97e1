"""docs/runbook/night.md: payment declines 200 orders by mistake; in the end all are Completed.

Each command of the page is run again here, on the deployed stack, and the services' ledger says
what really happened. REWRITE_PAGES=1 writes the page's blocks instead of comparing them.
"""

import faulthandler
from collections.abc import Iterator
from typing import cast

import pytest

from tests.console.operations_page import NIGHT
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import is_in, set_faults
from tests.emulator.incident import LONG, Inbox, decline, incident_stack, states
from tests.emulator.recording import Recording
from tests.emulator.test_under_fire import subscribe
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

ORDERS = [f"ord-{number}" for number in range(2001, 2201)]
LATE = "ord-2201"  # comes while payment is held


@pytest.fixture(scope="module")
def night(
    session_without_real_aws: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedStack]:
    """A stack of its own, so that no other test's trouble is in the recording."""
    # A test's bound is ten minutes; a busy machine may need more for this, whose waits have theirs.
    faulthandler.cancel_dump_traceback_later()
    with incident_stack(tmp_path_factory.mktemp("night") / "project", len(ORDERS)) as stack:
        yield stack


def test_two_hundred_orders_declined_by_mistake_are_all_completed(night: DeployedStack) -> None:
    subscribe(night)
    recording, inbox = Recording(night), Inbox(night)
    decline(night, ORDERS)
    show_mail(recording, "alert", inbox.wait(kind="orders_undone", news="first"))
    group, sample = look(night, recording)
    hold(night, recording)
    mend(night, recording)
    go_on(night, recording, group, sample)
    check_effects(night)
    clear(recording, inbox)
    recording.compare(NIGHT)


def show_mail(recording: Recording, block: str, alert: dict[str, str]) -> None:
    recording.says(block, f"Subject: {alert['subject']}", "", *alert["words"].splitlines())


def look(stack: DeployedStack, recording: Recording) -> tuple[str, str]:
    """What failed, why, and how many it hits; the group and one of its orders."""
    recording.types("look", "roundsman alerts")
    recording.types("look", "roundsman groups")
    [group] = cast("list[dict[str, object]]", recording.reads("groups", "ls")["groups"])
    name = str(group["group"])
    recording.types("group", f"roundsman groups show {name}")
    shown = recording.reads("groups", "show", name)
    sample = str(cast("list[dict[str, object]]", shown["samples"])[0]["orderId"])
    recording.types("order", f"roundsman why {sample}")
    recording.types("order", f"roundsman show {sample}")
    return name, sample


def hold(stack: DeployedStack, recording: Recording) -> None:
    """What is new waits and does not fail."""
    recording.types(
        "hold", 'roundsman hold payment --for 30m --yes --reason "it declines every card"'
    )
    recording.says("hold", "# another order comes")
    stack.submit(order(LATE))
    stack.wait_for("the order to be held", is_in(stack, "Retry", LATE), LONG, every=0.5)
    recording.types("hold", f"roundsman why {LATE}")


def mend(stack: DeployedStack, recording: Recording) -> None:
    """Those who run the service have found what it was."""
    set_faults(stack)
    recording.says("mended", "# the payment service is mended")
    recording.types(
        "mended", 'roundsman release payment --reason "the acquirer put its rule right"'
    )


def go_on(stack: DeployedStack, recording: Recording, group: str, sample: str) -> None:
    """All that were declined begin anew: shown first, then a few, then the rest."""
    command = f'roundsman resubmit --group {group} --again --reason "declined by mistake"'
    recording.types("dry-run", command)
    recording.types("run", f"{command} --canary 5 --rate 20 --go --yes")
    [run] = cast("list[dict[str, object]]", recording.reads("bulk", "ls")["runs"])
    recording.types("audit", f"roundsman bulk show {run['runId']}")
    recording.types("audit", f"roundsman show {sample}")
    assert states(stack, ORDERS) == {"Completed": len(ORDERS)}


def check_effects(stack: DeployedStack) -> None:
    """By the services' own ledger: what stands of each order is each effect once."""
    for name in ORDERS:
        found = effects_of(stack.services, name)
        assert found == {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}, name
    stack.wait_for("the order that waited", is_in(stack, "Completed", LATE), LONG, every=0.5)
    assert effects_of(stack.services, LATE) == ALL_EFFECTS


def clear(recording: Recording, inbox: Inbox) -> None:
    """The supervisor sends the all-clear."""
    # How many are left in the group when the mail is sent depends on how fast all this is.
    mail = inbox.wait(kind="orders_undone", news="clear")
    recording.says("clear", f"Subject: {mail['subject']}", "", mail["words"].splitlines()[0])
    recording.types("clear", "roundsman alerts")

"""docs/runbook/night.md in a real Chromium, on the deployed stack, from alert to last order.

The person only follows visible links, fills in forms and presses buttons, and reads sentences. What
happens around them (customers, the services) is done by the test. In the end each order is
Completed, with each effect exactly once in the services' own ledger, and no message is left.
"""

import faulthandler
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from roundsman.aws.dynamodb.control import KEEP_MARKS_FOR
from roundsman.model.instants import SECOND
from roundsman.wire.commands import INSPECT
from tests.console.operations_page import NIGHT
from tests.emulator.aftermath import body_of, messages_of
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE, is_in, set_faults
from tests.emulator.incident import LONG, Inbox, decline, incident_stack, states
from tests.emulator.person import Clicks, Person
from tests.emulator.served_console import served_console
from tests.emulator.test_under_fire import OPERATORS, subscribe
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.browser]

FEW, MANY = 32, 200
CANARY = 5
LATE = "ord-2901"  # comes while payment is held
WRONG = "ord-2902"  # its event is rejected
HOLD, RELEASE = "Hold payment\u2026", "Release payment\u2026"
CARRIER_IS_SLOW = {"operation": "POST /shipments", "status": 503, "retryAfter": 600}
ERROR = "CardDeclined: POST answered 402"


@dataclass(frozen=True)
class Night:
    """The stack of a night, and the orders that are declined in it."""

    stack: DeployedStack
    orders: Sequence[str]


@pytest.fixture(scope="module", params=[FEW, pytest.param(MANY, marks=pytest.mark.verify)])
def night(
    session_without_real_aws: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Night]:
    """A stack of its own, so that nobody else's order or message is left in it."""
    # A test's bound is ten minutes; a busy machine may need more for this, whose waits have theirs.
    faulthandler.cancel_dump_traceback_later()
    many: int = request.param
    with incident_stack(tmp_path_factory.mktemp("night") / "project", many) as stack:
        yield Night(stack, [f"ord-{number}" for number in range(2001, 2001 + many)])


def test_a_night_from_the_alert_to_the_last_order_in_the_browser(night: Night) -> None:
    stack, inbox = night.stack, Inbox(night.stack)
    subscribe(stack)
    stack.submit({**order(WRONG), "currency": "euro"})
    # One order is accepted before the others: a bulk run begins with the one that is due first.
    decline(stack, night.orders[:1])
    decline(stack, night.orders[1:])
    alert = inbox.wait(kind="orders_undone", news="first")
    assert f"{len(night.orders)} orders of order_fulfilment failed at charge_card" in alert["words"]
    with served_console(stack) as console:
        person = Person(console.page, stack, Clicks())
        look(night, person, alert["group"])
        hold(person)
        wait_for_a_late_order(person)
        set_faults(stack)  # the acquirer puts its rule right
        release(night, person)
        set_faults(stack, {**CARRIER_IS_SLOW, "orderId": night.orders[0]})
        run = start(night, person)
        other = stop(night, person, run)
        set_faults(stack)  # the carrier answers again
        attempt_the_one_that_waits(night, other)
        resume(night, person)
        correct(person)
        inbox.wait(kind="orders_undone", news="clear")
        leave(night, person)
    check_what_is_left(night)
    person.clicks.compare(NIGHT)


def look(night: Night, person: Person, group: str) -> None:
    """From the group that the e-mail names to its cause, and to one of its orders."""
    many, person.block = len(night.orders), "look"
    person.reads(f"{many} orders undone (order_fulfilment, charge_card)")
    person.finds_it_accessible()
    person.find(group)
    failed = f"{many} orders of order_fulfilment failed at charge_card and were undone: CardDecl"
    person.reads(failed, f"{many} orders undone: CardDeclined")
    person.finds_it_accessible()
    person.link("ord-2")
    person.reads("Undone", f"charge_card: failed for good: {ERROR}", "undone: reserve_stock")
    person.finds_it_accessible()


def hold(person: Person) -> None:
    """No further order is declined. The page of the group leads, with 30 minutes proposed."""
    person.block = "hold"
    person.link("f-")
    person.fill("Reason for the hold", "it declines every card", above=HOLD)
    shown = person.sends("Hold", show=HOLD)
    assert "payment would make no new call for 30 min:" in shown
    person.reads(
        "Done: payment is held for 30 min.", "Undo: release payment", "it declines every card"
    )
    person.block = ""
    person.finds_it_accessible()


def wait_for_a_late_order(person: Person) -> None:
    """An order comes while payment is held, and waits without an attempt."""
    stack = person.stack
    # Each function uses the holds that it has read for this time.
    end = time.monotonic() + KEEP_MARKS_FOR / SECOND
    stack.wait_for("every function to read the hold", lambda: time.monotonic() > end)
    stack.submit(order(LATE))
    stack.wait_for("the order to be held", is_in(stack, "Retry", LATE), LONG)
    person.block = "late"
    person.find(LATE)
    person.reads(
        f"{LATE} waits for payment, which is held by amy: it declines every card",
        "no attempt is counted",
    )
    person.block = ""


def release(night: Night, person: Person) -> None:
    """The late order goes on within a minute."""
    person.block = "release"
    person.link("Overview")
    person.link(f"{len(night.orders)} orders undone")
    person.fill("Reason for the release", "the acquirer put its rule right", above=RELEASE)
    assert "The hold of payment would end now" in person.sends("Release", show=RELEASE)
    person.reads("Done: payment is released, and takes work again.")


def start(night: Night, person: Person) -> str:
    """All that were declined begin anew, the canary first. Returns the id of the run."""
    many, person.block = len(night.orders), "resubmit"
    resubmit = f"Resubmit {many} orders\u2026"
    person.fill("Reason for the resubmission", "declined by mistake", above=resubmit)
    shown = person.sends("Resubmit all", show=resubmit)
    assert f"{many} of {many} orders are eligible; nothing was sent." in shown
    assert f"The first {CANARY} are sent" in shown
    person.reads("is stored: the supervisor begins within a minute.")
    person.finds_it_accessible()
    person.link("Follow b-")
    # One of the canary waits for the carrier, so nothing but the canary is sent.
    person.reads(f"{CANARY - 1} of {many} orders", f"Not reached {many - CANARY}")
    person.block = ""
    return person.page.url.rpartition("/")[2]


def stop(night: Night, person: Person, run: str) -> Person:
    """Another tab stops the run in the middle, and the first one says so. Returns the other."""
    person.block = "stop"
    other = person.in_another_tab("Bulk runs")
    other.link(run)
    other.link("Stop")
    other.fill("Reason", "the carrier is asked first")
    assert f"{run} is running. It would be stopped." in other.sends("Stop")
    other.reads("is stopped within a minute")
    person.reads("by amy", "the carrier is asked first", f"{CANARY - 1} of {len(night.orders)}")
    person.finds_it_accessible()
    in_the_middle = {"Completed": CANARY - 1, "Retry": 1, "Undone": len(night.orders) - CANARY}
    assert states(night.stack, night.orders) == in_the_middle
    other.block = person.block = ""
    return other


def attempt_the_one_that_waits(night: Night, other: Person) -> None:
    """A person need not wait for its next attempt."""
    waiting = night.orders[0]
    other.block = "run-now"
    other.link("Back to b-")
    other.link(waiting)  # the order in flight
    other.reads(f"{waiting} waits", "create_shipment")
    other.link("Run now")
    other.fill("Reason", "the carrier answers again")
    other.sends("Run")
    other.block = ""
    other.link(f"Back to {waiting}")
    other.reads(f"{waiting} has ended: Completed")
    other.page.close()


def resume(night: Night, person: Person) -> None:
    """The run goes on until each of its orders has a result."""
    many, person.block = len(night.orders), "resume"
    person.link("Resume")
    person.fill("Reason", "the carrier answers again")
    assert "is stopped. It would be resumed." in person.sends("Resume")
    person.link("Back to b-")
    person.reads("finished", f"{many} of {many} orders", f"Completed {many}")
    person.reads("the carrier is asked first", "the carrier answers again")
    person.finds_it_accessible()


def correct(person: Person) -> None:
    """The event that was rejected is corrected, and its order completes."""
    person.block = "correct"
    person.link("Overview")
    person.link("1 message was rejected")
    person.block = ""

    def is_listed() -> bool:
        # Another reader of the queue may hide the message for some seconds.
        if f"Order {WRONG}" not in person.text:
            person.link("Rejected")
        return f"Order {WRONG}" in person.text

    person.stack.wait_for("the rejected event", is_listed, PATIENCE, every=1)
    person.finds_it_accessible()
    person.block = "correct"
    person.link("Correct and send")
    person.replace("The message", '"euro"', '"EUR"')
    shown = person.sends("Correct and send")
    assert "It would take effect: it would be accepted. Nothing was sent." in shown
    assert '- "currency": "euro", + "currency": "EUR",' in shown
    person.block = ""
    person.link(f"Back to {WRONG}")
    person.reads(f"{WRONG} has ended: Completed")


def leave(night: Night, person: Person) -> None:
    """Nothing needs anybody any more."""
    done = len(night.orders) + 2
    person.find(LATE)
    person.reads(f"{LATE} has ended: Completed")
    person.block = "clear"
    person.link("Overview")
    person.reads("no agent is held, and no message is set aside", f"{done} Completed", "0 Undone")
    person.finds_it_accessible()


def check_what_is_left(night: Night) -> None:
    """By the stores and by the services: every effect once, and no message."""
    stack = night.stack
    assert states(stack, [*night.orders, LATE, WRONG]) == {"Completed": len(night.orders) + 2}
    for name in night.orders:
        found = effects_of(stack.services, name)
        assert found == {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}, name
    for name in (LATE, WRONG):
        assert effects_of(stack.services, name) == ALL_EFFECTS

    def no_message_is_left() -> bool:
        return all(
            queue == OPERATORS or body_of(message).get("kind") == INSPECT
            for queue, found in messages_of(stack).items()
            for message in found
        )

    # A reminder of a step's deadline is in its queue until then, and finds that the task has ended.
    stack.wait_for("no message to be left", no_message_is_left, PATIENCE)

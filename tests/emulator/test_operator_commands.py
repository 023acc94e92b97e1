"""What people ask of tasks on the deployed stack: by the application's queue and the command line.

Each command goes through the SchedulerQueue to the deployed scheduler; what it came to is read
from the services' ledger.
"""

from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    PATIENCE,
    asks,
    entry_of,
    faults,
    hanging,
    happened_at,
    history_of,
    is_in,
    step_is,
    steps_of,
    types,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack

LATER = {"operation": "POST /charges", "status": 503, "retryAfter": 3600}
NO_MAIL = {"operation": "POST /messages", "status": 422}


@pytest.fixture(scope="module")
def extended(stack: DeployedStack) -> int:
    """An order that is given more time, and its complete-by before that, in epoch ms.

    Made before the module's first test, so that its time passes while the others run.
    """
    with faults(stack, {**LATER, "orderId": "extended", "times": 1}):
        stack.submit(order("extended", completeWithin=45))
        stack.wait_for("its wait", is_in(stack, "Retry", "extended"), PATIENCE)
    before = cast("int", stack.task("extended")["CompleteBy"])
    asks(stack, "extend", "extended", "--by", "10m")
    return before


@pytest.mark.usefixtures("extended")
def test_an_application_cancels_its_order_while_a_step_is_at_its_agent(
    stack: DeployedStack,
) -> None:
    with faults(stack, {"operation": "POST /shipments", "orderId": "taken-back", "hang": True}):
        stack.submit(order("taken-back"))
        stack.wait_for("the shipment to hang", hanging(stack, 1), PATIENCE)
        stack.submit({"orderId": "taken-back", "cancel": {"undo": True, "reason": "ordered twice"}})
        stack.wait_for("the word", lambda: "Ending" in stack.task("taken-back"), PATIENCE)
        assert not is_in(stack, "Cancelled", "taken-back")(), "what is under way is waited for"
    stack.wait_for("its end", is_in(stack, "Cancelled", "taken-back"), PATIENCE)
    services = ("inventory", "payment", "shipping")
    assert effects_of(stack.services, "taken-back") == {
        f"{service} {operation}": 1 for service in services for operation in ("perform", "undo")
    }
    undone = [happened_at(stack, "taken-back", service, "undo") for service in reversed(services)]
    assert undone == sorted(undone), "undone newest first"


def test_an_operator_cancels_with_and_without_undo(stack: DeployedStack) -> None:
    with faults(stack, LATER):
        for order_id in ("cancel-undo", "cancel-as-is"):
            stack.submit(order(order_id))
        stack.wait_for("both", is_in(stack, "Retry", "cancel-undo", "cancel-as-is"), PATIENCE)
        asks(stack, "cancel", "cancel-undo")
        asks(stack, "cancel", "cancel-as-is", "--no-undo")
        stack.wait_for("both", is_in(stack, "Cancelled", "cancel-undo", "cancel-as-is"), PATIENCE)
    assert effects_of(stack.services, "cancel-undo") == {
        "inventory perform": 1,
        "inventory undo": 1,
    }
    assert effects_of(stack.services, "cancel-as-is") == {"inventory perform": 1}
    [row] = [row for row in history_of(stack, "cancel-as-is") if row["Kind"] == "cancel"]
    assert (row["By"], row["Reason"]) == ("ops", "cancel by ops: routine")


def test_resubmit_of_an_archived_order_completes_it_and_repeats_no_effect(
    stack: DeployedStack,
) -> None:
    with faults(stack, NO_MAIL):
        stack.submit(order("repaired"))
        stack.wait_for("its archive", is_in(stack, "Archived", "repaired"), PATIENCE)
    asks(stack, "resubmit", "repaired")
    stack.wait_for("its end", is_in(stack, "Completed", "repaired"), PATIENCE)
    assert effects_of(stack.services, "repaired") == ALL_EFFECTS
    for service in ("inventory", "payment", "shipping"):
        assert entry_of(stack, "repaired", service, "perform")["calls"] == 1, service


def test_the_deployed_submission_function_says_which_plan_is_the_newest(
    stack: DeployedStack,
) -> None:
    with faults(stack, NO_MAIL):
        stack.submit(order("newest-plan"))
        stack.wait_for("its archive", is_in(stack, "Archived", "newest-plan"), PATIENCE)
    asks(stack, "resubmit", "newest-plan", "--plan", "newest")
    stack.wait_for("its end", is_in(stack, "Completed", "newest-plan"), PATIENCE)
    assert effects_of(stack.services, "newest-plan") == ALL_EFFECTS


def test_resolve_takes_a_persons_word_for_a_step_and_the_order_completes(
    stack: DeployedStack,
) -> None:
    with faults(stack, NO_MAIL):
        stack.submit(order("sent-by-phone"))
        stack.wait_for("its archive", is_in(stack, "Archived", "sent-by-phone"), PATIENCE)
        asks(stack, "resolve", "sent-by-phone", "send_confirmation", "--did")
        stack.wait_for("its end", is_in(stack, "Completed", "sent-by-phone"), PATIENCE)
    without_mail = {name: count for name, count in ALL_EFFECTS.items() if "mail" not in name}
    assert effects_of(stack.services, "sent-by-phone") == without_mail


def test_run_starts_at_once_what_waits_for_its_time_or_its_next_attempt(
    stack: DeployedStack,
) -> None:
    with faults(stack, {**LATER, "orderId": "waits-on", "times": 1}):
        stack.submit(order("waits-on"))
        stack.submit(order("next-hour", processIn=3600))
        stack.wait_for("its next attempt", is_in(stack, "Retry", "waits-on"), PATIENCE)
        stack.wait_for("its time", is_in(stack, "Scheduled", "next-hour"), PATIENCE)
        asks(stack, "run", "waits-on")
        asks(stack, "run", "next-hour")
        ended = is_in(stack, "Completed", "waits-on", "next-hour")
        stack.wait_for("both", ended, PATIENCE)
    for order_id in ("waits-on", "next-hour"):
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
    assert steps_of(stack, "waits-on")["charge_card"]["FailureCount"] == 1


def test_a_command_that_makes_no_sense_is_refused_with_a_sentence(stack: DeployedStack) -> None:
    stack.submit(order("all-is-well"))
    stack.wait_for("its end", is_in(stack, "Completed", "all-is-well"), PATIENCE)
    assert step_is(stack, "all-is-well", "send_confirmation", "Processed")()
    refused = types(stack, "run", "all-is-well", "--as", "ops", "--reason", "routine", "--yes")
    assert refused.exit_code == 1
    assert "refused" in refused.stderr
    assert "Traceback" not in refused.output


def test_an_order_that_is_extended_completes_after_its_first_complete_by(
    stack: DeployedStack, extended: int
) -> None:
    assert stack.task("extended")["CompleteBy"] == extended + 600_000
    stack.wait_for("its end", is_in(stack, "Completed", "extended"), PATIENCE)
    assert happened_at(stack, "extended", "payment", "perform") >= extended
    assert effects_of(stack.services, "extended") == ALL_EFFECTS

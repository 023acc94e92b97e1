"""A workflow of a user's own, added to the registry as the deployment would have it."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

import workflows.registry
from roundsman import Archive, Retry, Step, Workflow
from roundsman_testing.stack import Stack
from tests.moto.orders import order
from workflows.order import with_total

SHORTLY = timedelta(seconds=30)

# Named as the agents' code knows them; when they run, and whether, is the workflow's matter.
reserve_stock = Step(
    name="reserve_stock", agent="inventory", complete_within=SHORTLY, retry=Retry(max_attempts=3)
)
charge_card = Step(
    name="charge_card", agent="payment", complete_within=SHORTLY, retry=Retry(max_attempts=1)
)
create_shipment = Step(
    name="create_shipment",
    agent="shipping",
    complete_within=SHORTLY,
    after=(reserve_stock, charge_card),
    retry=Retry(max_attempts=3),
)
send_confirmation = Step(
    name="send_confirmation",
    agent="mail",
    complete_within=SHORTLY,
    after=(create_shipment,),
    when="input.total > `100`",
    retry=Retry(max_attempts=3),
)
both_at_once = Workflow(
    name="both_at_once",
    input=with_total,
    steps=(reserve_stock, charge_card, create_shipment, send_confirmation),
    complete_within=timedelta(hours=1),
    on_failure=Archive(),
)

Deploy = Callable[[Workflow], None]


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Add a workflow to those that an order may ask for; before its function first runs."""

    def add(workflow: Workflow) -> None:
        known: Mapping[str, Workflow] = {
            **workflows.registry.WORKFLOWS,
            workflow.name: workflow,
        }
        monkeypatch.setattr(workflows.registry, "WORKFLOWS", known)

    return add


def priced(order_id: str, price: str) -> dict[str, object]:
    event = order(order_id, workflow="both_at_once", retention=60)
    return {**event, "lines": [{"sku": "KB-101", "quantity": 1, "unitPrice": price}]}


def test_independent_steps_are_claimed_at_once_and_a_step_after_both_waits_for_both(
    world: Stack, deploy: Deploy
) -> None:
    deploy(both_at_once)
    world.submit(priced("ord-1", "120.00"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    task = world.task("ord-1")
    assert task.version == 2
    assert {name: step.process_state.value for name, step in task.steps.items()} == {
        "reserve_stock": "Processing",
        "charge_card": "Processing",
    }
    world.run_one_batch("PaymentRequestQueue")
    world.run_one_batch("PaymentReplyQueue")
    assert "create_shipment" not in world.task("ord-1").steps
    world.run()
    assert world.task("ord-1").state == "Completed"
    world.assert_nothing_is_stuck()


def test_a_condition_decides_over_the_order_whether_a_step_runs_or_is_skipped(
    world: Stack, deploy: Deploy
) -> None:
    deploy(both_at_once)
    world.submit(priced("small", "99.99"), priced("large", "100.01"))
    world.run()
    assert world.task("small").step("send_confirmation").process_state == "Skipped"
    assert "mail perform" not in world.effects("small")
    assert world.task("large").step("send_confirmation").process_state == "Processed"
    assert world.effects("large")["mail perform"] == 1
    assert {world.task(name).state for name in ("small", "large")} == {"Completed"}


def test_a_branch_that_fails_for_good_waits_for_the_other_before_the_task_is_archived(
    world: Stack, deploy: Deploy
) -> None:
    deploy(both_at_once)
    world.submit({**priced("ord-1", "120.00"), "paymentToken": "tok_declined"})
    for queue in ("SubmissionQueue", "SchedulerQueue", "PaymentRequestQueue", "PaymentReplyQueue"):
        world.run_one_batch(queue)
    ending = world.task("ord-1")
    assert ending.state == "Active"
    assert ending.lane.startswith("open#"), "the other branch is still watched"
    world.run()
    task = world.task("ord-1")
    assert task.state == "Archived"
    assert task.step("reserve_stock").process_state == "Processed"
    assert world.effects("ord-1") == {"inventory perform": 1}
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_a_branch_that_dies_while_the_task_fails_is_found_by_the_supervisor(
    world: Stack, deploy: Deploy
) -> None:
    deploy(both_at_once)
    world.kill("InventoryFunction", at="SendMessage")
    world.submit({**priced("ord-1", "120.00"), "paymentToken": "tok_declined"})
    world.run()
    assert world.task("ord-1").state == "Active"
    world.pass_time(90)
    task = world.task("ord-1")
    assert task.state == "Archived"
    assert task.step("reserve_stock").process_state == "Error"
    assert world.effects("ord-1") == {"inventory perform": 1}


@pytest.mark.exhaustive
def test_a_deployment_that_takes_a_workflow_away_strands_no_order_that_runs_by_it(
    world: Stack, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(both_at_once)
    world.submit(priced("ord-1", "120.00"))
    world.run_one_batch("SubmissionQueue")
    monkeypatch.setattr(workflows.registry, "WORKFLOWS", {})
    world.redeploy()
    world.submit(priced("ord-2", "120.00"))
    world.run()
    assert world.task("ord-1").state == "Completed"
    [rejected] = world.rejected()
    assert rejected.paths() == ["processing.workflow"]


def test_a_step_of_an_agent_that_the_stack_does_not_have_ends_with_unknown_agent(
    world: Stack, deploy: Deploy
) -> None:
    fly = Step(name="fly", agent="drone", complete_within=SHORTLY, retry=Retry(max_attempts=1))
    by_air = Workflow(
        name="by_air", steps=(fly,), complete_within=timedelta(hours=1), on_failure=Archive()
    )
    deploy(by_air)
    world.submit({"orderId": "ord-1", "processing": {"workflow": "by_air"}})
    world.run()
    task = world.task("ord-1")
    assert task.state == "Archived"
    error = task.step("fly").error
    assert error is not None
    assert error.type == "UnknownAgent"
    assert "'drone'" in error.message
    world.assert_nothing_is_stuck()

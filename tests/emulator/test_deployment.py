"""A deployment of changed and removed workflows to a running stack, with tasks in flight."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_console.aws.local_record import Instances
from roundsman_dev.local import LocalAws, update
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import PROJECT, SUPERVISOR_INTERVAL, DeployedStack
from tests.emulator.helpers import PATIENCE, asks, faults, hanging, is_in, steps_of
from tests.emulator.projects import WORKFLOWS, copied, replace
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

PARAMETERS = {"SupervisorIntervalSeconds": str(SUPERVISOR_INTERVAL)}
STEPS = {"reserve_stock", "charge_card", "create_shipment", "send_confirmation"}
CHANGED_STEPS = STEPS - {"send_confirmation"} | {"thank_customer"}
SHORT_STEPS = {"reserve_stock", "charge_card"}
SHORT_EFFECTS = {"inventory perform": 1, "payment perform": 1}
LATER = {"operation": "POST /charges", "status": 503, "retryAfter": 3600}


@pytest.fixture
def changing(session_without_real_aws: None, tmp_path: Path) -> Iterator[DeployedStack]:
    """A stack of its own, since the test leaves another one behind than it found."""
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0, services=services.url, parameters=PARAMETERS, project=before(tmp_path / "old")
        ) as aws,
    ):
        yield DeployedStack(aws, services)


def before(folder: Path) -> Path:
    """The project with a second workflow."""
    project = copied(folder)
    with (project / WORKFLOWS / "order_fulfilment.py").open("a") as file:
        file.write('short = Workflow(name="short", steps=(reserve_stock, charge_card),\n')
        file.write("    complete_within=timedelta(hours=2), retain_for=timedelta(days=7),\n")
        file.write("    input=with_total)\n")
    registry = project / WORKFLOWS / "registry.py"
    replace(registry, "import order_fulfilment", "import order_fulfilment, short")
    replace(registry, "in (order_fulfilment,)", "in (order_fulfilment, short)")
    return project


def after(folder: Path) -> Path:
    """The project without the second workflow, and with the last step of the first one replaced.

    The agent of that step can still do the old one, as long as there are tasks that have it.
    """
    project = copied(folder)
    workflow = project / WORKFLOWS / "order_fulfilment.py"
    replace(workflow, "create_shipment, send_confirmation)", "create_shipment, thank_customer)")
    replace(
        workflow,
        "\norder_fulfilment = ",
        'thank_customer = Step(name="thank_customer", agent="mail", after=(create_shipment,),\n'
        "    complete_within=timedelta(seconds=30), on_failure=Archive())\n\norder_fulfilment = ",
    )
    mail = project / "functions" / "agents" / "mail" / "app.py"
    replace(mail, "import send_confirmation", "import send_confirmation, thank_customer")
    bound = "@mail.performs(send_confirmation)\n"
    replace(mail, bound, f"{bound}@mail.performs(thank_customer)\n")
    return project


def deploy(stack: DeployedStack, project: Path) -> None:
    """Deploy another project to the stack as it runs.

    Harsher than AWS: the emulator ends the instances of the old code in the middle of their calls,
    so what is at its agent comes back by its complete-by.
    """
    update.deploy(project, Instances(PROJECT).at(stack.aws.record.port))


def rejection_of(stack: DeployedStack, order_id: str) -> str:
    """Why an order was rejected, once it is."""
    found: list[dict[str, str]] = []

    def is_rejected() -> bool:
        queue = stack.output("RejectedQueueUrl")
        answer = stack.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1)
        messages = [json.loads(message["Body"]) for message in answer.get("Messages", [])]
        found.extend(message for message in messages if order_id in message["body"])
        return bool(found)

    stack.wait_for(f"the rejection of {order_id}", is_rejected, PATIENCE)
    return str(found[0]["reason"])


def test_tasks_in_flight_complete_by_their_own_plans_and_new_orders_run_the_new_one(
    changing: DeployedStack, tmp_path: Path
) -> None:
    stack, called, waiting = changing, ("called", "called-short"), ("waits", "waits-short")
    in_flight = (*called, *waiting, "scheduled")
    with faults(
        stack,
        *({"operation": "POST /charges", "orderId": each, "hang": True} for each in called),
        *({**LATER, "orderId": each, "times": 1} for each in waiting),
    ):
        for order_id in (*called, *waiting):
            wish = {"workflow": "short"} if order_id.endswith("-short") else {}
            stack.submit(order(order_id, **wish))
        stack.submit(order("scheduled", processIn=3600))
        stack.wait_for("the charges to hang", hanging(stack, len(called)), PATIENCE)
        stack.wait_for("tasks in Retry", is_in(stack, "Retry", *waiting), PATIENCE)
        stack.wait_for("a task in Scheduled", is_in(stack, "Scheduled", "scheduled"), PATIENCE)
        plans = {order_id: stack.task(order_id)["Plan"] for order_id in in_flight}
        deploy(stack, after(tmp_path / "new"))
        stack.submit(order("new"))
        stack.submit(order("too-late", workflow="short"))
        assert "processing.workflow" in rejection_of(stack, "too-late")
        stack.wait_for("the new order's end", is_in(stack, "Completed", "new"), PATIENCE)
        assert not any(is_in(stack, "Completed", order_id)() for order_id in in_flight)
    for order_id in (*waiting, "scheduled"):
        asks(stack, "run", order_id)
    stack.wait_for("the tasks in flight", is_in(stack, "Completed", *in_flight), PATIENCE)
    for order_id in in_flight:
        short = order_id.endswith("-short")
        assert set(steps_of(stack, order_id)) == (SHORT_STEPS if short else STEPS), order_id
        assert stack.task(order_id)["Plan"] == plans[order_id]
        assert effects_of(stack.services, order_id) == (SHORT_EFFECTS if short else ALL_EFFECTS)
    assert set(steps_of(stack, "new")) == CHANGED_STEPS
    assert stack.task("new")["Plan"] not in plans.values()
    assert effects_of(stack.services, "new") == ALL_EFFECTS

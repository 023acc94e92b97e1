"""An order that waits for a result which was left out, stored in a stack."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from roundsman import Step, Undo, Workflow
from roundsman.agents.agent import Agent
from roundsman.agents.request import StepRequest
from roundsman.definition.plan import plan_of
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.ports import OrderRow
from roundsman_console.aws.stack import DeployedStack
from roundsman_testing import World

CARD = "tok_0123456789"
STRANGE = "\x1b[2J [bold red]markup[/] <script>alert(1)</script>"
LIMIT = 4_096
ORDER: dict[str, Json] = {"orderId": "ord-1", "card": CARD}


def answer() -> Json:
    """A result of more than LIMIT bytes that quotes the order's card."""
    return {"note": STRANGE, "card": f"paid by {CARD}", "scan": "x" * LIMIT}


def a_sale(*, masked: bool = True, result_masked: bool = False) -> Workflow:
    """A workflow whose second step reads the result of the first."""
    half_a_minute = timedelta(seconds=30)
    charge = Step(
        name="charge",
        agent="payment",
        complete_within=half_a_minute,
        result_limit=LIMIT,
        result_masked=result_masked,
    )
    ship = Step(name="ship", agent="shipping", after=(charge,), complete_within=half_a_minute)
    return Workflow(
        name="sale",
        steps=(charge, ship),
        complete_within=timedelta(days=1),
        on_failure=Undo(),
        retain_for=timedelta(days=3),
        masked=("card",) if masked else (),
    )


def store_waiting(
    stack: DeployedStack, workflow: Workflow, *, then: Callable[[World], object] | None = None
) -> Task:
    """Store an order whose first step awaits its result, as it is after `then`."""
    charge = workflow.steps[0]
    payment = Agent("payment")

    @payment.performs(charge)
    def perform(_: StepRequest) -> Json:
        return answer()

    world = World(workflow, agents=[payment])
    order = world.submit(ORDER)
    world.run(for_=timedelta(minutes=1))
    if then is not None:
        then(world)
        world.run()
    task = world.processes.store.with_results_left_out(world.task(order))
    first = replace(task, version=task.version - 1, steps={})
    stack.plans.put_plan(plan_of(workflow))
    stack.tasks.create(OrderRow(order, ORDER, "hash", task.created_at), first)
    stack.tasks.save(replace(task, owed=()), seen=first.version, history=world.history(order))
    return task

"""Messages that no part of the stack would send: put aside or passed over, with the reason."""

import json
from collections.abc import Mapping

import pytest

from roundsman import Agent
from roundsman.model.states import TaskState
from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.support.poison import deadly_to_read

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
NEVER_ANY_MESSAGE = {
    "{not json": "not JSON",
    "[]": "not a JSON object",
    "7": "not a JSON object",
    "{}": "version: missing",
    '{"version": 2}': "this code reads 1",
    '{"version": 1, "version": 1}': "appears twice",
}


def wrong_commands() -> dict[str, str]:
    def command(**changes: object) -> str:
        return json.dumps({"version": 1, "kind": "start", "taskId": "ord-1", **changes})

    return {
        **NEVER_ANY_MESSAGE,
        command(kind="explode"): "kind",
        command(taskId=None): "taskId",
        command(taskId="no/slash"): "taskId",
        command(taskId="x" * 129): "taskId",
        command(version="1"): "version",
    }


def reply(**changes: object) -> str:
    return json.dumps(
        {
            "version": 1,
            "taskId": "ord-1",
            "step": "reserve_stock",
            "operation": "perform",
            "lock": "0000-0000000000.1",
            "idempotencyKey": "ord-1/reserve_stock/perform",
            "outcome": "succeeded",
            "result": None,
            "agent": "inventory",
            "finishedAt": 1,
            **changes,
        }
    )


def wrong_replies() -> dict[str, str]:
    return {
        **NEVER_ANY_MESSAGE,
        reply(outcome="perhaps"): "outcome",
        reply(lock=7): "lock",
        reply(outcome="transient"): "error: missing in a transient reply",
        reply(finishedAt="now"): "finishedAt",
        reply(operation="destroy"): "operation",
    }


def request(**changes: object) -> str:
    return json.dumps(
        {
            "version": 1,
            "taskId": "ord-1",
            "workflow": "order_fulfilment",
            "step": "reserve_stock",
            "operation": "perform",
            "lock": "0000-0000000000.1",
            "idempotencyKey": "ord-1/reserve_stock/perform",
            "attempt": 1,
            "completeBy": 9_000_000_000_000,
            "outcomeUnknown": False,
            "input": {},
            "results": {},
            "sentAt": 1,
            **changes,
        }
    )


def wrong_requests() -> dict[str, str]:
    return {
        **NEVER_ANY_MESSAGE,
        request(operation="destroy"): "operation",
        request(completeBy="soon"): "completeBy",
        request(results=[]): "results",
        request(idempotencyKey=None): "idempotencyKey",
    }


def assert_rejected(world: Stack, queue: str, sent: Mapping[str, str]) -> None:
    """All of `sent` was put aside, each with words of its reason, and named by its queue."""
    rejected = {r.text("body"): r for r in world.rejected()}
    assert set(rejected) == set(sent)
    for body, says in sent.items():
        assert says in rejected[body].text("reason")
        assert rejected[body]["queue"] == world.url(queue).rpartition("/")[2]


def run_in_one_batch_with(world: Stack, queue: str, wrong: Mapping[str, str]) -> None:
    """Put the wrong messages before and behind what waits in a queue; read it whole at once."""
    waiting = [m for m in world.bodies(world.url(queue)) if m not in wrong]
    bodies = list(wrong)
    first, rest = bodies[:4], bodies[4:]
    world.send(queue, *first, *waiting, *rest[: 6 - len(waiting)])
    world.run_one_batch(queue)
    assert world.waiting(queue) == 0, "one batch, and all of it is handled"
    world.send(queue, *rest[6 - len(waiting) :])
    world.run()


@pytest.mark.exhaustive
def test_a_command_that_is_none_is_put_aside_and_its_neighbours_start(world: Stack) -> None:
    world.submit(order("ord-1"), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    run_in_one_batch_with(world, "SchedulerQueue", wrong_commands())
    assert_rejected(world, "SchedulerQueue", wrong_commands())
    for order_id in ("ord-1", "ord-2"):
        assert world.effects(order_id) == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_a_command_for_a_task_that_never_was_makes_nothing(world: Stack) -> None:
    world.send("SchedulerQueue", {"version": 1, "kind": "start", "taskId": "nobodys"})
    world.send("SchedulerQueue", {"version": 1, "kind": "inspect", "taskId": "nobodys"})
    world.run()
    assert world.item("nobodys") == {}
    assert world.rejected() == []
    world.assert_nothing_is_stuck()


@pytest.mark.parametrize(
    ("agent", "before"),
    [
        ("Inventory", ()),
        pytest.param("Mail", ("Inventory", "Payment", "Shipping"), marks=pytest.mark.exhaustive),
    ],
)
def test_a_reply_that_is_none_is_put_aside_and_its_neighbours_count(
    world: Stack, agent: str, before: tuple[str, ...]
) -> None:
    world.submit(order("ord-1"), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    for earlier in before:
        world.run_one_batch(f"{earlier}RequestQueue")
        world.run_one_batch(f"{earlier}ReplyQueue")
    world.run_one_batch(f"{agent}RequestQueue")
    run_in_one_batch_with(world, f"{agent}ReplyQueue", wrong_replies())
    assert_rejected(world, f"{agent}ReplyQueue", wrong_replies())
    for order_id in ("ord-1", "ord-2"):
        assert world.effects(order_id) == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_replies_that_fit_no_claim_change_nothing(world: Stack) -> None:
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    before = world.item("ord-1")
    world.send(
        "InventoryReplyQueue",
        reply(taskId="nobodys"),
        reply(step="no_such_step", idempotencyKey="ord-1/no_such_step/perform"),
        reply(operation="undo"),
        reply(idempotencyKey="ord-2/reserve_stock/perform"),
        reply(outcome="permanent", error={"type": "OutOfStock", "message": ""}),
        reply(step="charge_card", idempotencyKey="ord-1/charge_card/perform"),
    )
    world.run_one_batch("InventoryReplyQueue")
    assert world.item("ord-1") == before
    world.run()
    assert world.task("ord-1").state == "Completed"
    assert world.rejected() == []
    world.assert_nothing_is_stuck()


@pytest.mark.parametrize(
    "agent",
    [AGENTS[0], *(pytest.param(agent, marks=pytest.mark.exhaustive) for agent in AGENTS[1:])],
)
def test_a_request_that_is_none_is_put_aside_by_every_agent_and_its_neighbours_are_answered(
    world_of_batches: Stack, agent: str
) -> None:
    world = world_of_batches
    world.submit(order("ord-1"), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    for earlier in AGENTS[: AGENTS.index(agent)]:
        world.run_one_batch(f"{earlier}RequestQueue")
        world.run_one_batch(f"{earlier}ReplyQueue")
    run_in_one_batch_with(world, f"{agent}RequestQueue", wrong_requests())
    assert_rejected(world, f"{agent}RequestQueue", wrong_requests())
    for order_id in ("ord-1", "ord-2"):
        assert world.effects(order_id) == ALL_EFFECTS
    world.send(f"{agent}UrgentRequestQueue", "{not json")
    world.run()
    assert_rejected(world, f"{agent}UrgentRequestQueue", {"{not json": "not JSON"})
    world.assert_nothing_is_stuck()


def test_a_request_for_a_step_that_the_agents_code_does_not_know_is_transient(
    world: Stack,
) -> None:
    world.send(
        "InventoryRequestQueue", request(step="paint_it", idempotencyKey="ord-1/paint_it/perform")
    )
    world.run_one_batch("InventoryRequestQueue")
    [answer] = world.messages(world.url("InventoryReplyQueue"))
    assert answer["outcome"] == "transient"
    assert answer["error"] == {
        "type": "NoHandler",
        "message": "the code of the inventory agent has no function to perform paint_it; "
        "deploy the agent with it: an order keeps the steps that its workflow had when it was "
        "submitted",
        "retryAfter": 60_000,
        "unexpected": True,
    }


@pytest.mark.exhaustive
def test_an_order_that_comes_to_an_agent_of_the_former_version_waits_for_the_new_one(
    world: Stack,
) -> None:
    """Agents are deployed after submission, which then starts plans that they do not know yet."""
    world.submit(order("before"))
    world.run()
    loaded = vars(world._instances["MailFunction"]._modules["app"]).values()
    [former] = [value for value in loaded if isinstance(value, Agent)]
    former._functions.clear()  # as if its code were from before the step
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state is TaskState.RETRY
    assert "mail perform" not in world.effects("ord-1")
    world.redeploy()
    world.pass_time(120)
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.effects("ord-1") == ALL_EFFECTS
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_a_task_whose_record_was_spoiled_goes_to_the_dead_letters_alone_with_an_alert(
    world: Stack,
) -> None:
    alerts = world.alert_queue()
    world.submit(order("ord-1"), order("spoiled"), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "spoiled"}},
        UpdateExpression="REMOVE CompleteBy",
    )
    world.pass_time(400)
    for order_id in ("ord-1", "ord-2"):
        assert world.task(order_id).state == "Completed"
        assert world.effects(order_id) == ALL_EFFECTS
    dead = world.messages(world.url("SchedulerDeadLetterQueue"))
    assert [message["taskId"] for message in dead] == ["spoiled"]
    sent = [json.loads(json.loads(body)["Message"]) for body in world.bodies(alerts)]
    assert [(alert["alert"], alert["samples"]) for alert in sent] == [
        ("task_unreadable", ["spoiled"])
    ]
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_a_message_that_kills_the_function_takes_none_of_its_batch_with_it(world: Stack) -> None:
    healthy = [f"ord-{number}" for number in range(9)]
    world.submit(*map(order, healthy[:5]), order("poison"), *map(order, healthy[5:]))
    world.run_one_batch("SubmissionQueue")

    # The supervisor would die of it as well and is left out: here it is the queue that is shown.
    with deadly_to_read(world, "poison"):
        for _ in range(182):  # 180 deliveries a minute apart: three hours
            world.run()
            world.clock.now += 61_000
    dead = world.messages(world.url("SchedulerDeadLetterQueue"))
    assert [message["taskId"] for message in dead] == ["poison"]
    # Its own order had two hours.
    world.pass_time_until(lambda: world.task("poison").ended, within=600)
    # What was decided in front of it was sent with the redelivery, which was too late: an attempt.
    for order_id in healthy:
        assert world.task(order_id).state == "Completed", order_id
        assert world.effects(order_id) == ALL_EFFECTS
        steps = world.task(order_id).steps.values()
        assert sum(step.failure_count for step in steps) <= 1
    world.assert_nothing_is_stuck()

"""A stack in which something of everything has happened, so that no page is empty."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3

from roundsman.model.instants import MINUTE, SECOND
from tests.console.operators import DECLINED, Operator
from tests.moto.orders import order
from tests.moto.test_dead_letters import redeliver

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDatumTypeDef

DECLINES = {"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}}
NO_REFUND = {"operation": "POST /refunds", "status": 400}
LATER: dict[str, object] = {"operation": "POST /shipments", "status": 503, "retryAfter": 600}


def busy(operator: Operator) -> None:
    """Orders of each end, orders that wait, rejected messages, a dead letter and a held agent."""
    world = operator.world
    world.clock.spans = [240, 810, 1_450, 330, 1_120, 95] * 40  # ms; the services take their time
    world.submit(*(order(f"ord-10{n:02}") for n in range(12)))
    world.run()
    world.clock.now += 3 * MINUTE
    world.submit(*({**order(f"ord-20{n:02}"), **DECLINED} for n in range(3)))
    world.run()
    world.clock.now += 2 * MINUTE
    world.faults(NO_REFUND, {**LATER, "orderId": "ord-3001"}, {**LATER, "orderId": "ord-3002"})
    world.submit(*({**order(f"ord-210{n}"), **DECLINED} for n in range(4)))
    world.submit(order("ord-3001"), order("ord-3002"))
    world.run()
    world.clock.now += 40 * SECOND
    world.submit(
        {**order("ord-4001"), "currency": "euro", "colour": "red"}, {"orderId": "ord-4002"}
    )
    world.run()
    spoiled(operator, "ord-5001")
    world.faults()
    world.clock.spans.clear()
    operator.types(
        *("hold", "mail", "--for", "30m", "--as", "amy", "--yes"),
        *("--reason", "new templates are being tried"),
    )
    world.submit(order("ord-6001"), order("ord-6002"))
    group = world.task("ord-2000").failure
    operator.types(
        *("resubmit", "--group", str(group), "--as", "amy", "--reason", "declined by mistake"),
        *("--go", "--yes", "--no-wait"),
    )
    world.pass_time(90)  # the supervisor makes its passes
    measured_day(world.clock.now)


def measured_day(now: int) -> None:
    """The metrics of a day on which a service failed for two hours in the morning."""
    data: list[MetricDatumTypeDef] = []
    for place in range(48):
        many = 60 + 50 * (place % 24 > 8) + 7 * (place % 5)
        failed = 30 if 14 <= place < 18 else place % 3
        for name, service, count in (
            ("OrdersAccepted", "submission", many),
            ("TasksCompleted", "scheduler", many - failed),
            ("TasksUndone", "scheduler", failed),
            ("TasksArchived", None, 12 if 14 <= place < 18 else 0),
        ):
            data.append(
                {
                    "MetricName": name,
                    "Dimensions": [{"Name": "service", "Value": service}] if service else [],
                    "Timestamp": datetime.fromtimestamp(now / 1000 - 1800 * (47 - place), tz=UTC),
                    "Value": count,
                }
            )
    boto3.client("cloudwatch").put_metric_data(Namespace="Roundsman/roundsman", MetricData=data)


def spoiled(operator: Operator, order_id: str) -> None:
    """An order whose record cannot be read, with its start in the dead-letter queue."""
    world = operator.world
    world.submit(order(order_id))
    world.run_one_batch("SubmissionQueue")
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": order_id}},
        UpdateExpression="SET CompleteBy2 = CompleteBy REMOVE CompleteBy",
    )
    redeliver(world)

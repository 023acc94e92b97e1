"""What happens to messages in the stories of the runbook.

SQS draws a message's id by lot; here the lot is drawn beforehand, so that the page shows what is
typed and printed.
"""

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout

from moto.moto_api._internal import mock_random

from roundsman.model.holds import OPERATOR, Hold
from roundsman_testing.stack import Stack
from tests.console.operators import holds_of
from tests.moto.orders import order
from tests.support.poison import deadly_to_read

ORDER = "ord-1001"


def _drawn(lot: int) -> None:
    mock_random.seed(lot)


def _rejected(world: Stack) -> None:
    _drawn(1)
    world.submit({**order(ORDER), "currency": "euro", "colour": "red"})
    world.run()
    world.clock.now += 20 * 60_000


def _five_deliveries(world: Stack) -> None:
    _deliveries(world, 5)


def _deliveries(world: Stack, times: int) -> None:
    """The queues alone work; the supervisor would send commands of its own."""
    for _ in range(times + 1):
        _drawn(2)
        with redirect_stdout(io.StringIO()):
            world.run()
        world.clock.now += 61_000


def _submitted(world: Stack) -> None:
    _drawn(2)
    world.submit(order(ORDER))
    world.run_one_batch("SubmissionQueue")


def _change(world: Stack, expression: str) -> None:
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": ORDER}},
        UpdateExpression=expression,
    )


def _unreadable(world: Stack) -> None:
    _submitted(world)
    _change(world, "SET CompleteBy2 = CompleteBy REMOVE CompleteBy")
    _five_deliveries(world)


def _mended(world: Stack) -> None:
    _change(world, "SET CompleteBy = CompleteBy2 REMOVE CompleteBy2")


def _crashed(world: Stack) -> None:
    _submitted(world)

    with deadly_to_read(world, ORDER):
        _deliveries(world, 180)


def _much_stands(world: Stack) -> None:
    _rejected(world)
    world.clock.now -= 20 * 60_000
    _unreadable(world)
    hold = Hold("mail", OPERATOR, world.clock(), world.clock() + 1_800_000, "new templates", "bob")
    holds_of(world).hold(hold)
    world.clock.now += 90_000


LETTER_STORIES: Mapping[str, Callable[[Stack], None]] = {
    "rejected": _rejected,
    "dead-letters": _unreadable,
    "dead-of-a-crash": _crashed,
    "alerts": _much_stands,
}
LETTER_THINGS: Mapping[str, Callable[[Stack], None]] = {"the record is mended": _mended}

"""What is kept of a rejected order event, in memory, on moto and on DynamoDB Local."""

from dataclasses import replace

from roundsman.aws.dynamodb.rejections import DynamoRejections
from roundsman.errors import Problem
from roundsman.model.instants import SECOND
from roundsman.submission.rejections import (
    LONGEST_PATH,
    LONGEST_PROBLEM,
    MOST_KEPT,
    REJECTION_KEPT_FOR,
    Rejection,
)
from tests.contract.samples import NOW
from tests.contract.worlds import World

REJECTED = Rejection(
    "ord-1",
    "m-1",
    NOW,
    (Problem("lines[0].quantity", "must be 1 or more"), Problem("", "too deep")),
)


def rejections(world: World) -> DynamoRejections:
    return DynamoRejections(world.client, control_table=world.tables.control)


def test_a_rejection_is_found_by_its_order_and_by_its_message(dynamo_world: World) -> None:
    kept = rejections(dynamo_world)
    kept.keep(REJECTED)
    kept.keep(REJECTED)  # a redelivery
    assert kept.of_order("ord-1", NOW) == REJECTED
    assert kept.of_message("m-1", NOW) == REJECTED
    assert kept.of_order("ord-2", NOW) is None
    assert kept.of_message("ord-1", NOW) is None
    assert kept.of_order("m-1", NOW) is None


def test_a_later_rejection_of_an_order_leaves_that_of_the_earlier_message(
    dynamo_world: World,
) -> None:
    kept, later = rejections(dynamo_world), replace(REJECTED, message_id="m-2", rejected_at=NOW + 1)
    kept.keep(REJECTED)
    kept.keep(later)
    assert kept.of_order("ord-1", NOW) == later
    assert kept.of_message("m-1", NOW) == REJECTED


def test_a_rejection_is_kept_for_a_day(dynamo_world: World) -> None:
    kept, over = rejections(dynamo_world), NOW + REJECTION_KEPT_FOR
    kept.keep(REJECTED)
    assert kept.of_order("ord-1", over - 1) == REJECTED
    assert kept.of_order("ord-1", over) is None
    row = dynamo_world.client.get_item(
        TableName=dynamo_world.tables.control, Key={"ControlId": {"S": "rejected#message#m-1"}}
    )["Item"]
    assert 0 <= int(row["ExpiresAt"]["N"]) * SECOND - over < SECOND


def test_a_rejection_that_is_long_is_cut(dynamo_world: World) -> None:
    """A path is as long as the event says, and an event may have a thousand problems."""
    kept = rejections(dynamo_world)
    long = (Problem("p" * 300, "m" * 600),) * MOST_KEPT
    kept.keep(replace(REJECTED, problems=long))
    cut = Problem("p" * LONGEST_PATH, "m" * LONGEST_PROBLEM)
    found = kept.of_order("ord-1", NOW)
    assert found is not None
    assert found.problems == (cut,) * MOST_KEPT
    kept.keep(replace(REJECTED, problems=(*long, *REJECTED.problems)))
    found = kept.of_order("ord-1", NOW)
    assert found is not None
    left_out = Problem("", "2 more problems are in the rejected message")
    assert found.problems == (*(cut,) * MOST_KEPT, left_out)


def test_a_path_that_is_no_unicode_is_kept(dynamo_world: World) -> None:
    kept = rejections(dynamo_world)
    kept.keep(replace(REJECTED, problems=(Problem("\ud800", "is unknown"),)))
    found = kept.of_order("ord-1", NOW)
    assert found is not None
    assert found.problems == (Problem("\ufffd", "is unknown"),)

"""The statuses that an application gets on the queue that it named."""

import pytest

from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.instants import iso
from roundsman.wire.commands import command_of
from roundsman_testing.stack import MORNING, QueueMessage, Stack
from tests.moto.orders import ALL_EFFECTS, order


def cancellation(order_id: str) -> dict[str, object]:
    """An application's wish to take its order back."""
    return {"orderId": order_id, "cancel": {"reason": "ordered twice"}}


def int_of(number: object) -> int:
    assert isinstance(number, int)
    return number


def numbered(statuses: list[QueueMessage]) -> list[tuple[object, object]]:
    """The statuses with their numbers."""
    return [(status["status"], status["seq"]) for status in statuses]


def test_an_application_gets_received_started_and_completed_with_rising_numbers(
    world: Stack,
) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue, correlationId="web-7"))
    world.run()
    statuses = world.messages(queue)
    assert numbered(statuses) == [("received", 1), ("started", 2), ("completed", 6)]
    assert statuses[0].fields == {
        "orderId": "ord-1",
        "correlationId": "web-7",
        "status": "received",
        "seq": 1,
        "at": iso(MORNING),
        "detail": "",
    }
    assert "Owed" not in world.item("ord-1")
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_an_application_gets_the_reason_why_its_order_failed(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.faults({"operation": "POST /messages", "status": 422, "body": {"error": "NoMailbox"}})
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    statuses = world.messages(queue)
    assert numbered(statuses) == [("received", 1), ("started", 2), ("failed", 6)]
    assert statuses[-1].text("detail").endswith("failed for good: NoMailbox: POST answered 422")


@pytest.mark.exhaustive
def test_an_application_gets_undone_alone_and_why(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.submit({**order("ord-1", replyTo=queue), "paymentToken": "tok_declined"})
    world.run()
    statuses = world.messages(queue)
    assert numbered(statuses) == [("received", 1), ("started", 2), ("undone", 6)]
    assert statuses[-1].text("detail").endswith("CardDeclined: POST answered 402")


@pytest.mark.exhaustive
def test_an_undo_that_fails_is_reported_as_failed(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.faults({"operation": "POST /refunds", "status": 400})
    world.submit({**order("ord-1", replyTo=queue), "paymentToken": "tok_declined"})
    world.run()
    assert numbered(world.messages(queue)) == [("received", 1), ("started", 2), ("failed", 6)]
    assert world.task("ord-1").state == "Archived"


def test_an_order_cancelled_before_its_time_was_never_started(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue, processIn=3600), cancellation("ord-1"))
    world.run()
    statuses = world.messages(queue)
    assert numbered(statuses) == [("received", 1), ("cancelled", 2)]
    assert statuses[-1].text("detail") == "cancelled by application: ordered twice"


@pytest.mark.exhaustive
def test_an_order_cancelled_at_work_is_reported_as_cancelled_once_it_is_undone(
    world: Stack,
) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue))
    for source in ("SubmissionQueue", "SchedulerQueue", "InventoryRequestQueue"):
        world.run_one_batch(source)
    world.submit(cancellation("ord-1"))
    world.run()
    statuses = world.messages(queue)
    assert [status["status"] for status in statuses] == ["received", "started", "cancelled"]
    assert world.task("ord-1").state == "Cancelled"
    assert world.effects("ord-1")["inventory undo"] == 1


@pytest.mark.exhaustive
def test_a_resubmitted_order_sends_a_status_for_each_end_and_one_for_its_start(
    world: Stack,
) -> None:
    queue = world.reply_queue("web")
    world.faults({"operation": "POST /messages", "status": 422, "times": 1})
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    asked = CommandSource("c-1", by="operator", reason="the mailbox is there again")
    world.send("SchedulerQueue", command_of("ord-1", Resubmit(asked)).body())
    world.run()
    assert [status["status"] for status in world.messages(queue)] == [
        "received",
        "started",
        "failed",
        "completed",
    ]


@pytest.mark.parametrize(
    "fault",
    [
        None,
        {"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}},
        {"operation": "POST /charges", "status": 503, "times": 2},
        pytest.param({"operation": "POST /messages", "status": 422}, marks=pytest.mark.exhaustive),
        pytest.param({"operation": "undo", "status": 400}, marks=pytest.mark.exhaustive),
    ],
)
def test_the_numbers_of_the_statuses_rise_whatever_becomes_of_an_order(
    world: Stack, fault: dict[str, object] | None
) -> None:
    queue = world.reply_queue("web")
    world.faults(*filter(None, [fault]))
    world.submit(order("ord-1", replyTo=queue))
    world.pass_time(30)
    statuses = world.messages(queue)
    numbers = [status["seq"] for status in statuses]
    assert numbers == sorted(set(numbers), key=int_of)
    assert [status["status"] for status in statuses][:2] == ["received", "started"]
    assert len(statuses) == 3
    assert numbers[-1] == world.task("ord-1").version


def test_an_application_gets_all_that_is_wrong_with_its_event(world: Stack) -> None:
    queue = world.reply_queue("web")
    wrong = {**order("ord-1", replyTo=queue, correlationId="web-7"), "currency": "euro"}
    wrong["lines"] = [{"sku": "KB-101", "quantity": 0, "unitPrice": "19.90"}]
    world.submit(wrong)
    world.run()
    [status] = world.messages(queue)
    assert numbered([status]) == [("rejected", 0)]
    assert (status["orderId"], status["correlationId"]) == ("ord-1", "web-7")
    assert "currency: must be three capital letters" in status.text("detail")
    assert "lines[0].quantity: must be a whole number" in status.text("detail")


@pytest.mark.exhaustive
def test_an_order_with_a_taken_id_is_rejected_on_its_own_queue(world: Stack) -> None:
    first, second = world.reply_queue("first"), world.reply_queue("second")
    world.submit(order("ord-1", replyTo=first))
    world.run()
    world.submit({**order("ord-1", replyTo=second), "customerId": "c-43"})
    world.run()
    assert numbered(world.messages(first)) == [("received", 1), ("started", 2), ("completed", 6)]
    [status] = world.messages(second)
    assert status["status"] == "rejected"
    assert "an order with this id and different content exists" in status.text("detail")


@pytest.mark.exhaustive
def test_the_same_order_again_is_received_again_and_changes_nothing(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    before = world.item("ord-1")
    world.messages(queue)
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    assert numbered(world.messages(queue)) == [("received", 1)]
    assert world.item("ord-1") == before
    assert world.effects("ord-1") == ALL_EFFECTS


def test_a_queue_that_is_not_the_stacks_to_send_to_is_refused_and_gets_nothing(
    world: Stack,
) -> None:
    own = world.reply_queue("web")
    foreign = world.sqs.create_queue(QueueName="somebody-elses")["QueueUrl"]
    fifo = world.sqs.create_queue(
        QueueName=f"{own.rpartition('/')[2]}.fifo", Attributes={"FifoQueue": "true"}
    )["QueueUrl"]
    refused = [
        foreign,
        fifo,
        world.url("SchedulerQueue"),
        own.replace("123456789012", "210987654321"),
        own.replace("us-east-1", "eu-west-1"),
        "https://example.com/roundsman-reply-web",
        "not a url",
    ]
    assert len(set(refused)) == len(refused)
    world.submit(*(order(f"ord-{n}", replyTo=url) for n, url in enumerate(refused)))
    world.run()
    rejected = world.rejected()
    assert [r.paths() for r in rejected] == [["processing.replyTo"]] * len(refused)
    assert not any(world.has_order(f"ord-{n}") for n in range(len(refused)))
    for queue in (own, foreign, fifo):
        assert world.bodies(queue) == []
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_a_reply_queue_that_was_deleted_harms_no_order(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    world.sqs.delete_queue(QueueUrl=queue)
    world.run()
    for order_id in ("ord-1", "ord-2"):
        assert world.task(order_id).state == "Completed"
        assert world.effects(order_id) == ALL_EFFECTS
    assert "Owed" not in world.item("ord-1")
    assert str(world.item("ord-1")["Lane"]).startswith("done#")
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_if_a_scheduler_dies_before_it_sends_completed_another_sends_it(
    world: Stack,
) -> None:
    queue = world.reply_queue("web")
    world.kill("SchedulerFunction", at="SendMessage", after=5)  # four requests and `started` go
    world.submit(order("ord-1", replyTo=queue, retention=0))
    world.run()
    assert numbered(world.messages(queue)) == [("received", 1), ("started", 2)]
    assert world.task("ord-1").state == "Completed"
    assert str(world.item("ord-1")["Lane"]).startswith("open#")
    world.pass_time(120)
    assert set(numbered(world.messages(queue))) == {("completed", 6)}
    left = world.item("ord-1")  # nothing, or what is gone for its readers
    assert str(left.get("Lane", "done#")).startswith("done#")
    world.assert_nothing_is_stuck()

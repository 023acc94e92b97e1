"""What an application is told of its orders, on the queue that it named."""

from roundsman.values import iso
from tests.moto.orders import ALL_EFFECTS, order
from tests.moto.world import MORNING, Document, World


def told(statuses: list[Document]) -> list[tuple[object, object]]:
    """The statuses with their numbers."""
    return [(status["status"], status["seq"]) for status in statuses]


def test_an_application_is_told_received_started_and_completed_with_rising_numbers(
    world: World,
) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue, correlationId="web-7"))
    world.run()
    statuses = world.documents(queue)
    assert told(statuses) == [("received", 1), ("started", 2), ("completed", 6)]
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


def test_an_application_is_told_why_its_order_failed(world: World) -> None:
    queue = world.reply_queue("web")
    world.submit({**order("ord-1", replyTo=queue), "paymentToken": "tok_declined"})
    world.run()
    statuses = world.documents(queue)
    assert told(statuses) == [("received", 1), ("started", 2), ("failed", 4)]
    assert statuses[-1].text("detail").endswith("CardDeclined: POST answered 402; needs undo")


def test_an_application_is_told_everything_that_is_wrong_with_its_event(world: World) -> None:
    queue = world.reply_queue("web")
    wrong = {**order("ord-1", replyTo=queue, correlationId="web-7"), "currency": "euro"}
    wrong["lines"] = [{"sku": "KB-101", "quantity": 0, "unitPrice": "19.90"}]
    world.submit(wrong)
    world.run()
    [status] = world.documents(queue)
    assert told([status]) == [("rejected", 0)]
    assert (status["orderId"], status["correlationId"]) == ("ord-1", "web-7")
    assert "currency: must be three capital letters" in status.text("detail")
    assert "lines[0].quantity: must be a whole number" in status.text("detail")


def test_an_order_with_a_taken_id_is_told_rejected_on_its_own_queue(world: World) -> None:
    first, second = world.reply_queue("first"), world.reply_queue("second")
    world.submit(order("ord-1", replyTo=first))
    world.run()
    world.submit({**order("ord-1", replyTo=second), "customerId": "c-43"})
    world.run()
    assert told(world.documents(first)) == [("received", 1), ("started", 2), ("completed", 6)]
    [status] = world.documents(second)
    assert status["status"] == "rejected"
    assert "an order with this id and other content exists" in status.text("detail")


def test_the_same_order_again_is_told_received_again_and_changes_nothing(world: World) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    before = world.item("ord-1")
    world.documents(queue)
    world.submit(order("ord-1", replyTo=queue))
    world.run()
    assert told(world.documents(queue)) == [("received", 1)]
    assert world.item("ord-1") == before
    assert world.effects("ord-1") == ALL_EFFECTS


def test_a_queue_that_is_not_the_stacks_to_send_to_is_refused_and_gets_nothing(
    world: World,
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


def test_a_reply_queue_that_was_deleted_harms_no_order(world: World) -> None:
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


def test_a_scheduler_that_dies_before_it_says_completed_has_it_said_by_another(
    world: World,
) -> None:
    queue = world.reply_queue("web")
    world.kill("SchedulerFunction", at="SendMessage", after=1)  # `started` goes, `completed` not
    world.submit(order("ord-1", replyTo=queue, retention=0))
    world.run()
    assert told(world.documents(queue)) == [("received", 1), ("started", 2)]
    assert world.task("ord-1").state == "Completed"
    assert str(world.item("ord-1")["Lane"]).startswith("open#")
    world.pass_time(120)
    assert set(told(world.documents(queue))) == {("completed", 6)}
    assert str(world.item("ord-1")["Lane"]).startswith("done#")
    world.assert_nothing_is_stuck()

"""`roundsman rejected`: what was put aside is listed, read, corrected and sent again."""

import json
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from roundsman_testing import s3_notification, sns_notification
from roundsman_testing.stack import Stack
from tests.console.operators import Operator, at_each_call, document
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order

WRONG = {**order("ord-1"), "currency": "euro", "colour": "\x1b[31mred\x1b[0m [bold]x[/]"}


TRIED_FOR = 360
"""Seconds after which a cancellation of an order that is not there is rejected."""


def rejected(world: Stack, *events: dict[str, object] | str) -> None:
    world.submit(*events)
    world.run()


def ids(operator: Operator) -> list[str]:
    messages = operator.reads("rejected", "ls")["messages"]
    assert isinstance(messages, list)
    return [message["messageId"] for message in messages]


@pytest.mark.exhaustive
def test_what_was_put_aside_is_listed_and_stays_where_it_is(operator: Operator) -> None:
    assert "No rejected messages" in operator.types("rejected", "ls").stdout
    rejected(operator.world, WRONG)
    operator.world.clock.now += 60_000
    rejected(operator.world, "{not json")
    listed = operator.reads("rejected", "ls")
    assert_schema("rejected-ls", listed)
    for _ in range(6):  # more looks than a queue with a redrive policy would survive
        assert operator.reads("rejected", "ls")["about"] == 2
    printed = operator.types("rejected", "ls").stdout
    assert "ord-1" in printed
    assert "colour" in printed
    assert "\x1b" not in printed
    assert "euro" not in printed.split("First problem")[0]
    one = operator.reads("rejected", "ls", "--limit", "1")
    assert one["more"] is True
    assert len(ids(operator)) == 2
    assert operator.world.waiting("RejectedQueue") == 2


def test_one_is_shown_with_every_problem_and_its_text_which_does_nothing(
    operator: Operator,
) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    shown = operator.types("rejected", "show", message[:8]).stdout
    assert "- currency: must be three capital letters" in shown
    assert "- colour: " in shown
    assert '"currency": "euro"' in shown
    assert "\x1b" not in shown
    assert "[bold]x[/]" in shown, "markup is text"
    found = operator.reads("rejected", "show", message)
    assert_schema("rejected-show", found)
    assert json.loads(str(found["body"])) == {**WRONG, "paymentToken": "(masked)"}


def test_a_corrected_one_is_sent_and_done_and_gone_from_here(operator: Operator) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    result = operator.types(
        *("rejected", "resend", message, "--set", "currency=EUR", "--remove", "colour", "--json")
    )
    assert result.exit_code == 0, result.output
    assert_schema("rejected-resend", document(result))
    operator.world.run()
    assert operator.world.effects("ord-1") == ALL_EFFECTS
    assert ids(operator) == []


@pytest.mark.exhaustive
def test_a_number_that_is_typed_for_a_text_is_text(operator: Operator) -> None:
    rejected(operator.world, {**order("ord-1"), "orderId": 1001, "customerId": None})
    [message] = ids(operator)
    result = operator.types(
        *("rejected", "resend", message, "--set", "orderId=1001", "--set", "customerId=42")
    )
    assert "roundsman show 1001" in result.stdout
    operator.world.run()
    assert operator.world.task("1001").state == "Completed"


@pytest.mark.exhaustive
def test_one_that_would_be_rejected_again_is_not_sent_and_says_all_that_is_wrong(
    operator: Operator,
) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    result = operator.types("rejected", "resend", message, "--set", "lines[0].quantity=none")
    assert result.exit_code == 1
    for path in ("currency", "colour", "lines[0].quantity"):
        assert f"- {path}: " in result.stderr
    refused = operator.types("rejected", "resend", message, "--json")
    assert refused.exit_code == 1
    assert document(refused)["outcome"] == "refused"
    assert ids(operator) == [message]
    assert operator.world.waiting("SubmissionQueue") == 0
    assert operator.types("rejected", "resend", message, "--anyway").exit_code == 0
    assert operator.world.waiting("SubmissionQueue") == 1


@pytest.mark.exhaustive
def test_an_id_that_is_taken_by_another_order_is_refused_as_submission_would(
    operator: Operator, tmp_path: Path
) -> None:
    operator.world.submit(order("ord-2"))
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    file = tmp_path / "order.json"
    file.write_text(json.dumps({**order("ord-2"), "customerId": "another"}))
    result = operator.types("rejected", "resend", message, "--body", f"@{file}")
    assert result.exit_code == 1
    assert "already used: an order with this id and different content exists" in result.stderr
    file.write_text('{"orderId": "nobodys", "cancel": {}}')
    assert (
        "has no task" in operator.types("rejected", "resend", message, "--body", f"@{file}").stderr
    )
    file.write_text(json.dumps(order("ord-2")))
    again = operator.types("rejected", "resend", message, "--body", f"@{file}")
    assert "the same order is already stored" in again.stdout


@pytest.mark.exhaustive
def test_it_is_sent_before_it_is_deleted(operator: Operator) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)

    def die(**_: object) -> None:
        raise KeyboardInterrupt

    fixed = ("--set", "currency=EUR", "--remove", "colour")
    for at in ("SendMessage", "DeleteMessage"):
        with at_each_call(f"sqs.{at}", die):
            assert operator.types("rejected", "resend", message, *fixed).exit_code == 130
        assert ids(operator) == [message], "let go, and still there"
    assert operator.types("rejected", "resend", message, *fixed).exit_code == 0
    operator.world.run()
    assert operator.world.effects("ord-1") == ALL_EFFECTS, "sent twice, done once"


@pytest.mark.exhaustive
def test_all_that_would_be_taken_now_are_sent_together(operator: Operator) -> None:
    world = operator.world
    rejected(world, WRONG, {"orderId": "ord-3", "cancel": {}})
    world.pass_time(TRIED_FOR)
    rejected(world, order("ord-3"))
    assert operator.types("rejected", "resend", "--all").exit_code == 2, "nobody can be asked"
    assert len(ids(operator)) == 2
    result = operator.types("rejected", "resend", "--all", "--yes", "--json")
    assert_schema("rejected-resend", document(result))
    assert document(result)["left"] == 1
    assert len(ids(operator)) == 1


@pytest.mark.exhaustive
def test_all_that_are_sent_together_say_how_far_they_came_and_that_there_are_more(
    operator: Operator,
) -> None:
    world = operator.world
    for number in (1, 2, 3):
        rejected(world, {"orderId": f"ord-{number}", "cancel": {}})
    world.pass_time(TRIED_FOR)
    rejected(world, *(order(f"ord-{number}") for number in (1, 2, 3)))
    world.sqs.send_message(QueueUrl=world.url("RejectedQueue"), MessageBody="a stranger's")
    every = ("rejected", "resend", "--all", "--yes", "--json")
    sends = [0]

    def dies(**_: object) -> None:
        sends[0] += 1
        if sends[0] == 2:
            raise KeyboardInterrupt

    with at_each_call("sqs.SendMessage", dies):
        broken = operator.types(*every)
    assert broken.exit_code == 130
    assert "Interrupted after 1. The others were not moved." in broken.stderr
    printed = document(broken)
    assert (printed["outcome"], printed["left"], printed["more"]) == ("refused", 3, False)
    assert len(ids(operator)) == 3
    assert document(operator.types(*every, "--limit", "1"))["more"] is True
    rest = operator.types(*every)
    assert document(rest)["left"] == 1, "nobody's is left too"


def test_one_is_dropped_when_a_person_says_so(operator: Operator) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    assert operator.types("rejected", "drop", message).exit_code == 2
    assert ids(operator) == [message]
    dropped = operator.types("rejected", "drop", message, "--yes", "--json")
    assert_schema("rejected-drop", document(dropped))
    assert ids(operator) == []


@pytest.mark.exhaustive
def test_more_than_one_receive_takes_are_read_and_let_go(operator: Operator) -> None:
    operator.world.send("RejectedQueue", *(f"none of the stack's {n}" for n in range(23)))
    assert len(ids(operator)) == 23
    listed = operator.reads("rejected", "ls", "--limit", "12")
    assert (len(listed["messages"]), listed["more"]) == (12, True)  # type: ignore[arg-type]

    def refuse(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="sqs")

    with at_each_call("sqs.ChangeMessageVisibilityBatch", refuse):
        assert len(ids(operator)) == 23
    assert ids(operator) == [], "hidden for a minute, since they could not be let go"
    output = operator.types("rejected", "ls").stdout
    assert "23 messages are hidden by another reader" in output
    operator.world.clock.now += 61_000
    [first, *_] = ids(operator)
    strange = operator.types("rejected", "resend", first)
    assert "The message came from no queue" in strange.stderr
    assert len(ids(operator)) == 23


def test_bad_input_is_one_sentence(operator: Operator) -> None:
    rejected(operator.world, WRONG, WRONG)
    for typed, code, says in (
        (("show", "nobodys"), 3, "No message 'nobodys'"),
        (("show", ""), 3, "No message"),
        (("resend",), 2, "Give either a message id or --all."),
        (("resend", "x", "--all"), 2, "Give either a message id or --all."),
        (("resend", "--all", "--set", "a=1"), 2, "--all sends messages unchanged"),
    ):
        result = operator.types("rejected", *typed)
        assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
        assert says in result.stderr
    first, second = ids(operator)
    same = first[: next(n for n in range(1, 36) if first[:n] != second[:n]) - 1]
    if same:
        assert operator.types("rejected", "show", same).exit_code == 2


def test_a_queue_with_dead_letters_of_its_own_is_not_looked_into(operator: Operator) -> None:
    rejected(operator.world, WRONG)
    sqs = boto3.client("sqs")
    dead = operator.world.url("SchedulerDeadLetterQueue")
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    policy = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": 1}
    sqs.set_queue_attributes(
        QueueUrl=operator.world.url("RejectedQueue"),
        Attributes={"RedrivePolicy": json.dumps(policy)},
    )
    for typed in (("ls",), ("show", "x"), ("resend", "--all"), ("drop", "x")):
        result = operator.types("rejected", *typed)
        assert result.exit_code == 1
        assert "It was not read" in result.stderr
    assert operator.world.bodies(operator.world.url("RejectedQueue"))


def test_a_body_is_read_before_any_message_is_hidden(operator: Operator, tmp_path: Path) -> None:
    rejected(operator.world, WRONG)
    [message] = ids(operator)
    resend = ("rejected", "resend", message)
    both = operator.types(*resend, "--body", "{}", "--set", "a=1")
    assert (both.exit_code, both.stderr) == (2, "Give either --body, or --set and --remove.\n")
    missing = operator.types(*resend, "--body", f"@{tmp_path / 'none'}")
    assert (missing.exit_code, missing.stderr) == (
        2,
        f"{tmp_path / 'none'} cannot be read: No such file or directory.\n",
    )
    file = tmp_path / "order.json"
    file.write_bytes(b"\xff")
    wrong = operator.types(*resend, "--body", f"@{file}")
    assert (wrong.exit_code, wrong.stderr) == (2, f"{file} is not UTF-8 text.\n")
    typed = operator.types(*resend, "--body", "@-", answer=json.dumps(order("ord-1")))
    assert typed.exit_code == 0, typed.output


def test_a_message_without_fields_is_replaced_by_an_option_that_is_named(
    operator: Operator,
) -> None:
    operator.world.send("SubmissionQueue", "not JSON")
    operator.world.run()
    [message] = ids(operator)
    result = operator.types("rejected", "resend", message, "--set", "a=1")
    assert result.exit_code == 2
    assert result.stderr.endswith("Replace the whole message with --body @file.\n")


def admits(world: Stack, *arns: str) -> None:
    """Let the queue of order events take the events of these sources, as a deployment does."""
    arn, sqs = world.source("SubmissionQueue").queue_arn, boto3.client("sqs")
    statement = {
        "Sid": "TakesEventsOfSources",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnLike": {"aws:SourceArn": list(arns)}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    url = sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})


def test_an_envelope_is_sent_again_once_its_source_is_listed(operator: Operator) -> None:
    rejected(operator.world, sns_notification(order("ord-1"), topic="orders"))
    [message] = ids(operator)
    refused = operator.types("rejected", "resend", message)
    assert refused.exit_code == 1
    assert "SubmitterSources does not list" in refused.output
    admits(operator.world, "arn:aws:sns:us-east-1:123456789012:orders")
    sent = operator.reads("rejected", "resend", "--all", "--yes")
    assert sent["left"] == 0
    operator.world.run()
    assert operator.world.effects("ord-1") == ALL_EFFECTS
    assert ids(operator) == []


def test_an_envelope_with_an_event_that_would_be_rejected_again_is_not_sent(
    operator: Operator,
) -> None:
    admits(operator.world, "arn:aws:s3:::uploads")
    rejected(operator.world, s3_notification("one", "two", bucket="uploads"))
    [message] = ids(operator)
    refused = operator.types("rejected", "resend", message)
    assert refused.exit_code == 1
    assert "Records[1]: has no orderId, and no workflow takes" in refused.output

"""`roundsman submit`, `show` and `ls` as a person types them, over a deployed stack."""

import json
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner, Result

from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.errors import CallRefused
from roundsman_console.base import clock as polling
from roundsman_console.base.errors import aws_sentence
from roundsman_console.main import app
from roundsman_testing import sns_notification
from roundsman_testing.stack import Stack
from tests.console.operators import Patience, without_place
from tests.moto.orders import ALL_EFFECTS, order


@pytest.fixture(autouse=True)
def patience(world: Stack, monkeypatch: pytest.MonkeyPatch) -> Patience:
    """The functions run whenever a command waits."""
    found = Patience(world.run)
    monkeypatch.setattr(polling, "time", found)
    return found


def roundsman(*arguments: str, typed: str = "") -> Result:
    # Wide, so that no sentence is broken where a test looks for it.
    return CliRunner().invoke(app, arguments, input=typed, env={"COLUMNS": "200"})


def sentence(result: Result, code: int = 1) -> str:
    """The sentence on standard error without the place. Nothing else may be printed."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert isinstance(result.exception, SystemExit), "a traceback is no sentence"
    message = without_place(result.stderr)
    assert message.count("\n") == 1, message
    return message.rstrip("\n")


def test_an_order_that_was_submitted_is_shown_step_by_step(world: Stack, tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps(order("ord-1")))
    sent = roundsman("submit", str(file))
    assert (sent.exit_code, sent.stdout) == (0, "Accepted. See: roundsman show ord-1\n")
    world.run()
    shown = roundsman("show", "ord-1")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("ord-1  order_fulfilment  Completed\n")
    document = json.loads(roundsman("show", "ord-1", "--json").stdout)
    assert (document["orderId"], document["state"]) == ("ord-1", "Completed")
    assert [(step["name"], step["processState"]) for step in document["steps"]] == [
        ("reserve_stock", "Processed"),
        ("charge_card", "Processed"),
        ("create_shipment", "Processed"),
        ("send_confirmation", "Processed"),
    ]
    assert world.effects("ord-1") == ALL_EFFECTS


def test_an_order_can_be_typed_in(world: Stack) -> None:
    sent = roundsman("submit", "-", "--json", typed=json.dumps(order("ord-1")))
    assert json.loads(sent.stdout)["orderId"] == "ord-1"
    world.run()
    assert world.effects("ord-1") == ALL_EFFECTS


def test_the_order_is_known_when_submit_has_ended(world: Stack, patience: Patience) -> None:
    sent = roundsman("submit", "-", typed=json.dumps(order("ord-1")))
    assert sent.stdout == "Accepted. See: roundsman show ord-1\n"
    assert roundsman("show", "ord-1").exit_code == 0
    assert patience.slept


def test_an_order_that_is_not_known_in_time_may_be_on_its_way(
    world: Stack, patience: Patience
) -> None:
    patience.sleeping = lambda: None
    sent = roundsman("submit", "-", typed=json.dumps(order("ord-1")))
    assert sent.exit_code == 4
    assert sent.stdout == ""
    assert "ord-1 was sent, but it is not known whether it was accepted: the stack " in sent.stderr
    assert "It may still be on its way" in sent.stderr
    assert patience.now == pytest.approx(15)
    assert roundsman("show", "ord-1").exit_code == 3
    patience.slept.clear()
    sent = roundsman("submit", "-", "--no-wait", typed=json.dumps(order("ord-2")))
    assert (sent.stdout, patience.slept) == ("Sent. See: roundsman show ord-2\n", [])


def test_an_order_that_is_rejected_is_an_exit_code_without_waiting_for_an_end(
    world: Stack, patience: Patience
) -> None:
    wrong = json.dumps(order("ord-1") | {"currency": "x"})
    sent = roundsman("submit", "-", "--anyway", "--json", typed=wrong)
    assert sent.exit_code == 1
    found = json.loads(sent.stdout)
    assert (found["outcome"], found["state"]) == ("rejected", None)
    assert [one["path"] for one in found["problems"]] == ["currency"]
    assert "ord-1 was rejected: currency: " in sent.stderr
    assert patience.now < 1


@pytest.mark.exhaustive
def test_the_id_of_another_order_is_refused_before_and_after_it_is_sent(
    world: Stack, patience: Patience
) -> None:
    assert roundsman("submit", "-", typed=json.dumps(order("ord-1"))).exit_code == 0
    again = roundsman("submit", "-", "--json", typed=json.dumps(order("ord-1")))
    assert (again.exit_code, json.loads(again.stdout)["outcome"]) == (0, "accepted")
    other = json.dumps(order("ord-1") | {"paymentToken": "tok_other"})
    refused = sentence(roundsman("submit", "-", typed=other))
    assert "would be rejected: orderId: already used: an order with this id and diff" in refused
    assert "Nothing was sent" in refused
    for wait in ((), ("--wait", "60")):
        sent = roundsman("submit", "-", "--anyway", "--json", *wait, typed=other)
        assert (sent.exit_code, json.loads(sent.stdout)["outcome"]) == (1, "rejected")
        assert "ord-1 was rejected: orderId: already used" in sent.stderr
    patience.sleeping = lambda: None
    sent = roundsman("submit", "-", "--anyway", typed=other)
    assert sent.exit_code == 4
    assert "an order ord-1 was there before, and none was rejected within 15 s" in sent.stderr


ELSEWHERE = ("--stack", "roundsman")


@pytest.mark.parametrize(
    ("processing", "why"),
    [
        (7, "processing: must be an object"),
        ({"priority": "soon"}, "processing.priority: "),
        ({"processAt": "soon"}, "processing.processAt: "),
        ({"urgent": True}, "processing.urgent: unknown field"),
        ({"replyTo": "https://sqs.test/1/other"}, "processing.replyTo: is not the URL of a queue"),
    ],
)
@pytest.mark.parametrize("application", [True, False])
def test_what_every_workflow_would_reject_is_not_sent(
    world: Stack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    application: bool,
    processing: object,
    why: str,
) -> None:
    """Also of an order that is stored: `processing` is no part of what tells two orders apart."""
    assert roundsman("submit", "-", typed=json.dumps(order("ord-1"))).exit_code == 0
    if not application:
        monkeypatch.chdir(tmp_path)
    wrong = json.dumps(order("ord-1") | {"processing": processing})
    refused = sentence(roundsman("submit", "-", *ELSEWHERE, typed=wrong))
    assert f"Standard input would be rejected: {why}" in refused
    assert world.waiting("SubmissionQueue") == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("wait", [(), ("--wait", "60")])
def test_a_stored_order_does_not_show_that_an_unchecked_event_is_accepted(
    world: Stack,
    patience: Patience,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait: tuple[str, ...],
) -> None:
    same = json.dumps(order("ord-1"))
    unknown = json.dumps(order("ord-1") | {"processing": {"workflow": "nope"}})
    assert roundsman("submit", "-", typed=same).exit_code == 0
    world.run()
    anyway = roundsman("submit", "-", "--anyway", "--json", *wait, typed=unknown)
    assert (anyway.exit_code, json.loads(anyway.stdout)["outcome"]) == (1, "rejected")
    monkeypatch.chdir(tmp_path)  # without an application
    sent = roundsman("submit", "-", "--json", *ELSEWHERE, *wait, typed=unknown)
    assert (sent.exit_code, json.loads(sent.stdout)["outcome"]) == (1, "rejected")
    assert "ord-1 was rejected: processing.workflow: unknown workflow; " in sent.stderr
    start = patience.now
    again = roundsman("submit", "-", *ELSEWHERE, *wait, typed=same)
    assert patience.now - start == pytest.approx(15)
    if wait:
        assert again.exit_code == 0, "the order has ended, and no event was rejected"
    else:
        assert again.exit_code == 4
        assert "an order ord-1 was there before, and none was rejected" in again.stderr


@pytest.mark.exhaustive
def test_the_time_of_an_unchecked_event_is_part_of_the_time_to_wait(
    world: Stack, patience: Patience, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = json.dumps(order("ord-1") | {"processing": {"processIn": 3600}})
    assert roundsman("submit", "-", typed=later).exit_code == 0
    monkeypatch.chdir(tmp_path)  # without an application
    for seconds in (5, 60):
        start = patience.now
        sent = roundsman("submit", "-", *ELSEWHERE, "--wait", str(seconds), typed=later)
        assert sent.exit_code == 4
        assert f"ord-1 has not ended after {seconds} s." in sent.stderr
        assert patience.now - start == pytest.approx(seconds)


@pytest.mark.exhaustive
def test_an_order_whose_content_may_not_be_read_is_told_apart_by_its_id(
    world: Stack, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise CallRefused("reading the order ord-1: AccessDenied")

    monkeypatch.setattr(DynamoStore, "order", denied)
    assert roundsman("submit", "-", typed=json.dumps(order("ord-1"))).exit_code == 0
    other = json.dumps(order("ord-1") | {"paymentToken": "tok_other"})
    assert roundsman("submit", "-", typed=other).exit_code == 1
    again = roundsman("submit", "-", typed=json.dumps(order("ord-1")))
    assert again.exit_code == 4
    monkeypatch.setattr(DynamoStore, "has_order", denied)
    unknown = roundsman("submit", "-", typed=json.dumps(order("ord-2")))
    assert unknown.exit_code == 4
    assert "it cannot be read: reading the order ord-1: AccessDenied" in unknown.stderr


def test_a_run_of_a_schedule_is_followed_by_the_id_that_it_gets(world: Stack) -> None:
    run = json.dumps(order("weekly") | {"processing": {"run": "2027-01-15T09:00:00Z"}})
    sent = roundsman("submit", "-", "--json", typed=run)
    found = json.loads(sent.stdout)
    assert (sent.exit_code, found["orderId"]) == (0, "weekly-20270115T090000Z")
    again = roundsman("submit", "-", "--wait", "60", typed=run)
    assert again.exit_code == 0, again.output


def test_a_cancellation_that_is_submitted_is_accepted_or_refused(world: Stack) -> None:
    later = order("ord-1") | {"processing": {"processIn": 3600}}
    assert roundsman("submit", "-", typed=json.dumps(later)).exit_code == 0
    cancel = json.dumps({"orderId": "ord-1", "cancel": {}})
    assert roundsman("submit", "-", "--json", typed=cancel).exit_code == 0
    world.run()
    assert world.task("ord-1").state == "Cancelled"
    refused = roundsman("submit", "-", typed=cancel)
    assert refused.exit_code == 1
    assert "ord-1 was refused: cancel by application refused: " in refused.stderr
    assert refused.stderr.endswith(" See: roundsman show ord-1\n")


@pytest.mark.exhaustive
def test_submit_waits_for_the_end_and_shows_the_progress_without_contents(world: Stack) -> None:
    sent = roundsman("submit", "-", "--wait", "60", typed=json.dumps(order("ord-1")))
    assert (sent.exit_code, sent.stdout) == (0, "")
    lines = without_place(sent.stderr).splitlines()
    assert lines[-1].startswith("ord-1: Completed, ")
    assert "charge_card Processed" in lines[-1]
    assert "tok_" not in sent.stderr
    assert world.effects("ord-1") == ALL_EFFECTS


def test_an_order_that_ends_otherwise_is_an_exit_code_for_scripts(world: Stack) -> None:
    declined = json.dumps(order("ord-1") | {"paymentToken": "tok_declined"})
    sent = roundsman("submit", "-", "--wait", "60", "--json", typed=declined)
    assert sent.exit_code == 1
    found = json.loads(sent.stdout)
    assert (found["outcome"], found["state"], found["problems"]) == ("ended", "Undone", [])
    assert "ord-1 is Undone, not completed. See: roundsman show ord-1\n" in sent.stderr


def test_an_order_that_has_not_ended_in_time_is_another(world: Stack, patience: Patience) -> None:
    later = json.dumps(order("ord-1") | {"processing": {"processIn": 3600}})
    sent = roundsman("submit", "-", "--wait", "60", typed=later)
    assert sent.exit_code == 4
    assert "ord-1 has not ended after 60 s. See: roundsman show ord-1\n" in sent.stderr
    assert patience.now == pytest.approx(60)
    patience.sleeping = lambda: None
    sent = roundsman("submit", "-", "--wait", "5", typed=json.dumps(order("ord-2")))
    assert sent.exit_code == 4
    assert "Sent, but ord-2 is not known after 5 s" in sent.stderr


def test_who_waits_for_a_rejected_order_learns_why_at_once(
    world: Stack, patience: Patience
) -> None:
    wrong = json.dumps(order("ord-1") | {"currency": "x"})
    sent = roundsman("submit", "-", "--anyway", "--wait", "600", "--json", typed=wrong)
    assert sent.exit_code == 1
    found = json.loads(sent.stdout)
    assert (found["outcome"], found["state"]) == ("rejected", None)
    (problem,) = found["problems"]
    assert problem["path"] == "currency"
    assert f"ord-1 was rejected: currency: {problem['message']}. See: roundsman rejected ls" in (
        sent.stderr
    )
    assert patience.now < 1
    sent = roundsman("submit", "-", "--wait", "600", typed=json.dumps(order("ord-1")))
    assert sent.exit_code == 0, "the event was corrected"


def test_who_waits_for_an_order_that_is_not_kept_learns_that_it_has_ended(world: Stack) -> None:
    short = json.dumps(order("ord-1", retention=0))
    sent = roundsman("submit", "-", "--wait", "600", "--json", typed=short)
    assert sent.exit_code == 4
    assert json.loads(sent.stdout)["outcome"] == "removed"
    assert "ord-1 has ended, and its record was removed: how it ended is not kept." in sent.stderr


def test_to_wait_and_not_to_wait_exclude_each_other(world: Stack) -> None:
    sent = roundsman("submit", "-", "--wait", "5", "--no-wait", typed=json.dumps(order("ord-1")))
    assert sent.exit_code == 2
    assert "Give either --wait or --no-wait." in sent.stderr


WRONG = {
    "\ufeff"
    + json.dumps({"orderId": "ord-1"}): "begins with a byte order mark; send it without one",
    '{"orderId": "ord-1", "total": ' + "9" * 5_000 + "}": "more than 4300 digits in a row",
    '{"orderId": 1001}': "orderId: must be text",
    '{"orderId": "a b"}': "orderId: must be 1 to 128",
}


@pytest.mark.parametrize("application", [True, False])
@pytest.mark.parametrize(("event", "why"), WRONG.items(), ids=["mark", "digits", "number", "id"])
def test_a_wrong_event_is_answered_by_what_to_change(
    world: Stack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    application: bool,
    event: str,
    why: str,
) -> None:
    if not application:
        monkeypatch.chdir(tmp_path)
    message = sentence(roundsman("submit", "-", "--stack", "roundsman", typed=event))
    assert why in message
    assert "Python" not in message


def test_what_would_be_rejected_is_sent_only_if_asked_explicitly(
    world: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = {**order("ord-1"), "processing": {"workflow": "nope"}, "total": 1}
    message = sentence(roundsman("submit", "-", typed=json.dumps(unknown)))
    assert message.startswith("Standard input would be rejected: ")
    assert "processing.workflow: " in message
    assert message.endswith(
        "Nothing was sent. Correct it, or add --anyway to send it nevertheless."
    )
    for wrong in ("{", "[]", '{"orderId": 1}'):
        assert "would be rejected: " in sentence(roundsman("submit", "-", typed=wrong))
    monkeypatch.chdir(tmp_path)  # without an application
    far = ("--stack", "roundsman")
    wrong = sentence(roundsman("submit", "-", *far, typed="{"))
    assert "not JSON: " in wrong
    world.run()
    assert not world.rejected()
    assert roundsman("submit", "-", *far, typed=json.dumps(unknown)).exit_code == 1
    sent = roundsman("submit", "-", *far, "--anyway", typed="{")
    assert sent.exit_code == 1
    assert "it is not an order event. See: roundsman rejected ls" in sent.stderr
    world.run()
    assert len(world.rejected()) == 2


def test_an_envelope_may_be_sent_again_and_what_becomes_of_it_is_not_said(
    world: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = sns_notification(order("ord-1") | {"currency": "x"}, topic="orders")
    refused = sentence(roundsman("submit", "-", typed=wrong))
    assert "would be rejected: Message.currency: must be three capital letters" in refused
    right = sns_notification(order("ord-1"), topic="orders")
    sent = roundsman("submit", "-", "--json", typed=right)
    assert (sent.exit_code, json.loads(sent.stdout)["outcome"]) == (4, "notKnown")
    assert "what becomes of an envelope of SNS, S3 or EventBridge is not followed" in sent.stderr
    monkeypatch.chdir(tmp_path)  # without an application
    assert roundsman("submit", "-", "--stack", "roundsman", typed=right).exit_code == 4
    world.run()
    assert [one.paths() for one in world.rejected()] == [["TopicArn"], ["TopicArn"]]


def test_what_cannot_be_sent_is_a_sentence(world: Stack, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    assert "cannot be read: No such file" in sentence(roundsman("submit", "nowhere.json"), 2)
    assert "cannot be read: Is a directory" in sentence(roundsman("submit", str(tmp_path)), 2)
    assert "is not UTF-8 text" in sentence(roundsman("submit", str(binary)), 2)
    assert sentence(roundsman("submit", "-")).startswith("Standard input is empty")
    assert "SQS accepts at most 1048576" in sentence(
        roundsman("submit", "-", typed="x" * 1_048_577)
    )


@pytest.mark.exhaustive
def test_tasks_are_listed_by_state_and_those_that_need_a_person_come_first(world: Stack) -> None:
    world.faults({"service": "mail", "orderId": "unwritten", "status": 400})
    declined = {**order("declined"), "paymentToken": "tok_declined"}
    world.submit(order("good"), declined, order("unwritten"))
    world.run()

    def listed(*options: str) -> list[str]:
        found = json.loads(roundsman("ls", "--json", *options).stdout)
        return [task["orderId"] for task in found["tasks"]]

    assert listed()[0] == "unwritten"
    assert sorted(listed()) == ["declined", "good", "unwritten"]
    assert listed("--state", "Archived") == ["unwritten"]
    assert listed("--state", "Undone") == ["declined"]
    assert listed("--state", "Completed") == ["good"]
    assert listed("--state", "Active") == []
    assert "send_confirmation: failed for good" in roundsman("ls", "--state", "Archived").stdout
    assert (
        "More than 1 exist; raise --limit, or continue with --after "
        in roundsman("ls", "--limit", "1").stdout
    )


def test_an_unknown_order_is_a_sentence_with_an_exit_code_of_its_own(world: Stack) -> None:
    assert sentence(roundsman("show", "nope"), 3).startswith("There is no order nope in roundsman")
    assert sentence(roundsman("show", "nope"), 3).endswith("See: roundsman rejected ls")
    for strange in ("", "a/b", "x" * 3_000, "a\nb\x1b[2J"):
        assert "There is no order" in sentence(roundsman("show", strange), 3)


def test_an_order_whose_task_was_removed_is_distinguished_from_one_that_never_was(
    world: Stack,
) -> None:
    world.submit(order("short", retention=0))
    world.run()
    world.pass_time(60)
    assert "its task has ended, and its retention too" in sentence(roundsman("show", "short"), 3)


@pytest.mark.parametrize("command", [("show", "ord-1"), ("ls",), ("submit", "-")])
def test_a_missing_stack_is_a_sentence(world: Stack, command: tuple[str, ...]) -> None:
    result = roundsman(*command, "--stack", "elsewhere", typed="{}")
    assert sentence(result).startswith("There is no stack elsewhere in this account and region")


def test_the_stack_is_found_by_the_nearest_samconfig(
    world: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    message = sentence(roundsman("ls"))
    assert message.startswith("There is no samconfig.toml here, so no stack is named.")
    assert message.endswith("name another stack with --stack.")
    config = tmp_path / "samconfig.toml"
    config.write_text('[default.deploy.parameters]\nstack_name = "roundsman"\n')
    assert roundsman("ls").exit_code == 0
    config.write_text("version = 0.1\n")
    assert "sets no stack_name" in sentence(roundsman("ls"))
    config.write_text("version =\n")
    assert "samconfig.toml cannot be read" in sentence(roundsman("ls"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDenied", "AWS refused DescribeStacks with these credentials"),
        ("InvalidClientTokenId", "AWS refused DescribeStacks with these credentials"),
        ("ExpiredToken", "The AWS credentials have expired. Sign in again."),
        ("Throttling", "AWS is throttling DescribeStacks. Try again in a moment."),
        ("Strange", "AWS answered DescribeStacks with Strange: why"),
    ],
)
def test_what_aws_refuses_is_a_sentence(code: str, message: str) -> None:
    error = ClientError({"Error": {"Code": code, "Message": "why"}}, "DescribeStacks")
    assert aws_sentence(error).startswith(message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("AWS_DEFAULT_REGION", None, "No AWS region is set"),
        ("AWS_PROFILE", "nobody", "Set AWS_PROFILE to a profile that exists"),
        ("AWS_ENDPOINT_URL", "garbage", "AWS_ENDPOINT_URL must be an address"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "Check the network and AWS_ENDPOINT_URL."),
        ("AWS_ACCESS_KEY_ID", None, "No AWS credentials are set"),
    ],
)
def test_an_environment_that_leads_to_no_aws_is_a_sentence(
    name: str, value: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.delenv("AWS_REGION")
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    if name == "AWS_ACCESS_KEY_ID":
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert message in sentence(roundsman("ls"))

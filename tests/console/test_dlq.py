"""`roundsman dlq`: dead letters are listed with their reason, and sent back to their queue."""

import json

import pytest
from botocore.exceptions import ClientError

from roundsman.wire.commands import START, Command
from roundsman_console.facts.set_aside.messages import dead_queues, held
from roundsman_console.facts.set_aside.peek import WHILE_ASKED
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Stack
from tests.console.operators import Operator, at_each_call, document
from tests.console.schemas import assert_schema
from tests.moto.orders import ALL_EFFECTS, order
from tests.moto.test_dead_letters import THREE_HOURS, redeliver
from tests.support.poison import deadly_to_read

TASKS = "TasksTableName"


def spoiled(operator: Operator, *order_ids: str) -> None:
    """Orders whose records cannot be read, with their starts in the dead-letter queue."""
    world = operator.world
    world.submit(*map(order, order_ids))
    world.run_one_batch("SubmissionQueue")
    for order_id in order_ids:
        change(world, order_id, "SET CompleteBy2 = CompleteBy REMOVE CompleteBy")
    redeliver(world)


def mend(world: Stack, order_id: str) -> None:
    """A person repairs the record, as it was."""
    change(world, order_id, "SET CompleteBy = CompleteBy2 REMOVE CompleteBy2")


def change(world: Stack, order_id: str, expression: str) -> None:
    world.dynamodb.update_item(
        TableName=world.stack.outputs[TASKS],
        Key={"TaskId": {"S": order_id}},
        UpdateExpression=expression,
    )


def listed(operator: Operator) -> list[dict[str, object]]:
    found = operator.reads("dlq", "ls")["messages"]
    assert isinstance(found, list)
    return found


def shown_of(found: dict[str, object]) -> dict[str, object]:
    """The one that is shown."""
    messages = found["messages"]
    assert isinstance(messages, list)
    [message] = messages
    assert isinstance(message, dict)
    return message


@pytest.mark.exhaustive
def test_dead_letters_are_listed_with_their_reason_and_stay_where_they_are(
    operator: Operator,
) -> None:
    assert "No dead letters." in operator.types("dlq", "ls").stdout
    spoiled(operator, "ord-1")
    found = operator.reads("dlq", "ls")
    assert_schema("dlq-ls", found)
    [message] = listed(operator)
    assert message["reason"] == "the record ord-1 cannot be read: CompleteBy is missing"
    assert (message["orderId"], message["receives"]) == ("ord-1", 5)
    for _ in range(6):
        assert operator.types("dlq", "ls", "SchedulerQueue").exit_code == 0
    printed = operator.types("dlq", "ls").stdout
    assert "SchedulerQueue (read by the scheduler function): 1 dead" in printed
    assert "cannot be read: CompleteBy is missing" in " ".join(printed.split())
    assert len(listed(operator)) == 1


def test_one_is_shown_with_what_would_come_of_it_and_where_its_log_is(operator: Operator) -> None:
    spoiled(operator, "ord-1")
    [message] = listed(operator)
    shown = operator.types("dlq", "show", str(message["messageId"])[:8]).stdout
    assert "Reason: the record ord-1 cannot be read" in shown
    assert "If sent back now: it would fail again" in shown
    assert "aws logs filter-log-events --log-group-name /aws/lambda/roundsman/scheduler" in shown
    assert '"kind": "start"' in shown
    found = operator.reads("dlq", "show", "SchedulerQueue")
    assert_schema("dlq-show", found)
    assert shown_of(found)["verdict"] == "fails"
    mend(operator.world, "ord-1")
    again = operator.reads("dlq", "show", str(message["messageId"]))
    assert shown_of(again)["verdict"] == "acts"


@pytest.mark.exhaustive
def test_what_killed_its_function_says_what_is_known(operator: Operator) -> None:
    world = operator.world
    world.submit(order("poison"))
    world.run_one_batch("SubmissionQueue")

    with deadly_to_read(world, "poison"):
        redeliver(world, THREE_HOURS + 2)
    [message] = listed(operator)
    assert message["reasonKnown"] is False
    assert "crash, time-out or out of memory" in str(message["reason"])
    assert message["receives"] == THREE_HOURS, "looking does not count"
    shown = shown_of(operator.reads("dlq", "show", str(message["messageId"])))
    assert "platform.runtimeDone" in str(shown["log"])
    assert operator.types("dlq", "redrive", "SchedulerQueue").exit_code == 0
    world.run()
    assert world.task("poison").state == "Undone", "its order had two hours"


@pytest.mark.exhaustive
def test_more_than_one_are_only_listed_until_a_person_says_yes(operator: Operator) -> None:
    world = operator.world
    spoiled(operator, "ord-1", "ord-2", "ord-3")
    world.sqs.send_message(
        QueueUrl=world.url("SchedulerDeadLetterQueue"),
        MessageBody=Command(START, "nobodys").body(),
        MessageAttributes={"trace": {"DataType": "String", "StringValue": "abc"}},
    )
    mend(world, "ord-1")
    mend(world, "ord-2")
    dry = operator.reads("dlq", "redrive", "SchedulerQueue")
    assert_schema("dlq-redrive", dry)
    assert dry["verdicts"] == {"acts": 2, "passed_over": 1, "rejected": 0, "fails": 1}
    assert (dry["dryRun"], dry["sent"], dry["left"]) == (True, 0, 4)
    output = operator.types("dlq", "redrive", "schedulerqueue").stdout
    assert "start of ord-1: it would take effect" in output
    assert "command of ord-3: it would fail again" in output
    assert "Nothing was sent. To send 3 of them, add --yes." in output
    done = operator.types("dlq", "redrive", "SchedulerQueue", "--yes", "--rate", "1")
    assert "3 sent back to SchedulerQueue, 1 left." in done.stdout
    assert operator.patience.slept == [1.0, 1.0]
    world.run()
    assert world.effects("ord-1") == world.effects("ord-2") == ALL_EFFECTS
    assert [message["orderId"] for message in listed(operator)] == ["ord-3"]


@pytest.mark.exhaustive
def test_what_comes_back_is_seen_to_have_come_back(operator: Operator) -> None:
    world = operator.world
    spoiled(operator, "ord-1")
    [message] = listed(operator)
    only = ("--only", str(message["messageId"])[:8])
    stays = operator.types("dlq", "redrive", "SchedulerQueue", *only)
    assert "0 sent back to SchedulerQueue, 1 left. Add --anyway to send" in stays.stdout
    assert stays.exit_code == 1
    anyway = operator.reads("dlq", "redrive", "SchedulerQueue", *only, "--anyway")
    assert (anyway["sent"], anyway["cameBack"]) == (1, 0)
    assert listed(operator) == []
    redeliver(world)
    [back] = listed(operator)
    assert (back["sentBack"], back["reasonKnown"]) == (1, True)
    assert back["messageId"] != message["messageId"]
    assert operator.reads("dlq", "redrive", "SchedulerQueue", "--anyway")["cameBack"] == 1


@pytest.mark.exhaustive
def test_a_letter_and_its_copy_are_one(operator: Operator) -> None:
    world = operator.world
    operator.world.kill("SchedulerFunction", at="SendMessage", done=True)
    spoiled(operator, "ord-1")
    assert world.waiting("SchedulerDeadLetterQueue") == 2
    [message] = listed(operator)
    assert (message["copies"], message["reasonKnown"]) == (1, True)
    mend(world, "ord-1")
    operator.types("dlq", "redrive", "SchedulerQueue")
    assert world.waiting("SchedulerDeadLetterQueue") == 0
    world.run()
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.exhaustive
def test_what_is_interrupted_loses_nothing(operator: Operator) -> None:
    spoiled(operator, "ord-1", "ord-2")
    mend(operator.world, "ord-1")
    mend(operator.world, "ord-2")

    def die(**_: object) -> None:
        raise KeyboardInterrupt

    for at in ("SendMessage", "DeleteMessage"):
        with at_each_call(f"sqs.{at}", die):
            result = operator.types("dlq", "redrive", "SchedulerQueue", "--yes", "--json")
        assert (result.exit_code, document(result)["left"]) == (130, 2)
        assert "The others were not moved" in result.stderr
        assert len(listed(operator)) == 2, "let go at once"


@pytest.mark.exhaustive
def test_what_aws_breaks_off_says_how_far_it_came(operator: Operator) -> None:
    spoiled(operator, "ord-1", "ord-2", "ord-3")
    for name in ("ord-1", "ord-2", "ord-3"):
        mend(operator.world, name)
    operator.patience.sleeping = lambda: None  # so that nobody else sends meanwhile
    sends = [0]

    def refused(**_: object) -> None:
        sends[0] += 1
        if sends[0] == 2:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")

    with at_each_call("sqs.SendMessage", refused):
        result = operator.types("dlq", "redrive", "SchedulerQueue", "--yes", "--json")
    assert result.exit_code == 1
    assert (document(result)["sent"], document(result)["left"]) == (1, 2)
    assert "Stopped after 1. The others were not moved." in result.stderr
    assert len(listed(operator)) == 2, "let go at once"


@pytest.mark.exhaustive
def test_letters_stay_hidden_until_the_last_of_many_can_have_been_sent(operator: Operator) -> None:
    spoiled(operator, "ord-1")
    hidden: list[object] = []

    def notes(params: dict[str, object], **_: object) -> None:
        hidden.append(params["VisibilityTimeout"])

    many = ("--limit", "1000", "--rate", "100")
    with at_each_call("sqs.ReceiveMessage", notes):
        operator.types("dlq", "redrive", "SchedulerQueue", *many)
    # A thousand at two calls each and one to judge, a tenth of a second each: not in 70 s.
    assert set(hidden) == {320}


@pytest.mark.exhaustive
def test_it_is_reported_that_there_are_more_than_the_limit(operator: Operator) -> None:
    spoiled(operator, "ord-1", "ord-2", "ord-3")
    for name in ("ord-1", "ord-2", "ord-3"):
        mend(operator.world, name)
    limited = ("dlq", "redrive", "SchedulerQueue", "--limit", "2")
    assert operator.reads(*limited)["more"] is True
    output = operator.types(*limited, "--yes").stdout
    assert "2 sent back to SchedulerQueue, 0 left." in output
    assert "More than 2 exist; raise --limit, or repeat the command." in output
    assert operator.reads(*limited, "--yes")["more"] is False
    assert listed(operator) == []


def test_while_one_is_asked_about_the_others_of_its_queue_are_seen(operator: Operator) -> None:
    spoiled(operator, "ord-1", "ord-2")
    first, second = (str(message["messageId"]) for message in listed(operator))
    with held(dead_queues(Inspector.of_stack().stack), first, WHILE_ASKED):
        assert [message["messageId"] for message in listed(operator)] == [second]
    assert len(listed(operator)) == 2


@pytest.mark.exhaustive
def test_a_dead_letter_is_dropped_when_a_person_says_so(operator: Operator) -> None:
    spoiled(operator, "ord-1")
    [message] = listed(operator)
    which = str(message["messageId"])
    assert operator.types("dlq", "drop", which).exit_code == 2
    dropped = operator.types("dlq", "drop", which, "--yes", "--json")
    assert_schema("dlq-drop", document(dropped))
    assert json.loads(str(document(dropped)["body"]))["taskId"] == "ord-1"
    assert listed(operator) == []


def test_bad_input_is_one_sentence(operator: Operator) -> None:
    for typed, says in (
        (("ls", "nowhere"), "No queue 'nowhere' in roundsman. The queues are Submission"),
        (("show", "nobodys"), "No dead letter 'nobodys'"),
        (("redrive", "SchedulerQueue", "--only", "x"), "No dead letter 'x'"),
        (("drop", "", "--yes"), "No dead letter ''"),
    ):
        result = operator.types("dlq", *typed)
        assert (result.exit_code, result.stderr.count("\n")) == (3, 1), result.output
        assert says in result.stderr

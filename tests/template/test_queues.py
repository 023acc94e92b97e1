"""No message is lost, too large, readable on the way, or redelivered while it is being handled."""

from roundsman.testing.stack.template import Document, mapping_of
from tests.template.reading import (
    dead_letter_queues,
    items,
    of_type,
    referred,
    statements,
    texts,
    work_queues,
)

FOURTEEN_DAYS = 14 * 24 * 3600
LARGEST_MESSAGE = 1024 * 1024
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")


def test_every_queue_that_functions_read_has_a_dead_letter_queue_of_its_own(
    document: Document,
) -> None:
    redrives = {
        name: mapping_of(queue["RedrivePolicy"]) for name, queue in work_queues(document).items()
    }
    targets = [referred(redrive["deadLetterTargetArn"]) for redrive in redrives.values()]
    assert sorted(targets) == sorted(dead_letter_queues(document))
    for redrive in redrives.values():
        assert redrive["maxReceiveCount"] == {"Ref": "MaxReceiveCount"}


def test_a_dead_letter_queue_takes_messages_of_its_own_source_only(document: Document) -> None:
    sources = {
        referred(mapping_of(queue["RedrivePolicy"])["deadLetterTargetArn"]): queue["QueueName"]
        for queue in work_queues(document).values()
    }
    for name, queue in dead_letter_queues(document).items():
        allowed = mapping_of(queue["RedriveAllowPolicy"])
        assert allowed["redrivePermission"] == "byQueue"
        (arn,) = map(mapping_of, items(allowed["sourceQueueArns"]))
        source = mapping_of(sources[name])["Fn::Sub"]
        assert arn["Fn::Sub"] == (
            "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:" + str(source)
        )


def test_each_agent_has_a_normal_and_an_urgent_request_queue_and_a_reply_queue(
    document: Document,
) -> None:
    expected = {
        f"{agent}{kind}Queue" for agent in AGENTS for kind in ("Request", "UrgentRequest", "Reply")
    }
    assert set(work_queues(document)) == expected | {"SubmissionQueue", "SchedulerQueue"}


def test_what_nobody_reads_by_itself_is_kept_for_fourteen_days(document: Document) -> None:
    queues = of_type(document, "AWS::SQS::Queue")
    for name in [*dead_letter_queues(document), "RejectedQueue"]:
        assert queues[name]["MessageRetentionPeriod"] == FOURTEEN_DAYS, name


def test_a_dead_letter_is_kept_longer_than_the_message_it_was(document: Document) -> None:
    """A message keeps the time it was first sent when it moves to a dead-letter queue."""
    for name, queue in work_queues(document).items():
        retention = queue["MessageRetentionPeriod"]
        assert isinstance(retention, int)
        assert retention <= FOURTEEN_DAYS // 2, name


def test_every_queue_takes_messages_as_large_as_sqs_does(document: Document) -> None:
    for name, queue in of_type(document, "AWS::SQS::Queue").items():
        assert queue["MaximumMessageSize"] == LARGEST_MESSAGE, name


def test_every_queue_is_encrypted(document: Document) -> None:
    for name, queue in of_type(document, "AWS::SQS::Queue").items():
        assert queue["SqsManagedSseEnabled"] is True, name


def test_every_queue_refuses_what_comes_without_tls(document: Document) -> None:
    refused = set()
    for policy in of_type(document, "AWS::SQS::QueuePolicy").values():
        (statement,) = statements(policy["PolicyDocument"])
        assert statement["Effect"] == "Deny"
        assert statement["Principal"] == "*"
        assert texts(statement["Action"]) == ["sqs:*"]
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        refused |= {referred(queue) for queue in items(policy["Queues"])}
    assert refused == set(of_type(document, "AWS::SQS::Queue"))


def test_no_queue_of_the_stack_can_be_taken_for_an_applications_reply_queue(
    document: Document,
) -> None:
    prefix = mapping_of(mapping_of(mapping_of(document["Outputs"])["ReplyQueuePrefix"])["Value"])
    assert prefix == {"Fn::Sub": "${AWS::StackName}-reply-"}
    for name, queue in of_type(document, "AWS::SQS::Queue").items():
        # A queue without a name of its own gets the stack's name and its logical id.
        given = mapping_of(queue.get("QueueName", {"Fn::Sub": f"${{AWS::StackName}}-{name}"}))
        assert not str(given["Fn::Sub"]).startswith("${AWS::StackName}-reply-"), name


def test_a_stacks_name_of_52_characters_leaves_room_for_every_queues_name(
    document: Document,
) -> None:
    for name, queue in of_type(document, "AWS::SQS::Queue").items():
        if "QueueName" in queue:
            assert mapping_of(queue["QueueName"]) == {"Fn::Sub": f"${{AWS::StackName}}-{name}"}
            assert 52 + len(f"-{name}") <= 80

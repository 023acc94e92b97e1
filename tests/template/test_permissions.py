"""Each function may do what it does and no more; nothing is readable at rest or on the way."""

import re
from collections.abc import Iterator

import pytest

from roundsman.testing.stack.template import Document, Json, mapping_of
from tests.project import TEMPLATE
from tests.template.reading import (
    allowed_to,
    every_policy,
    granted,
    items,
    keys_granted,
    of_type,
    referred,
    statements,
    target,
    texts,
    work_queues,
)

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
REPLY_QUEUES_OF_APPLICATIONS = (
    "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-reply-*"
)
# What may be done to each kind of thing, by whom. Sending and receiving are tested by queue.
TABLE_ACTIONS = {
    "SubmissionRole": {
        "OrdersTable": {"GetItem", "PutItem"},
        "TasksTable": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"},
        "ControlTable": {"PutItem"},
    },
    "SchedulerRole": {
        "OrdersTable": {"GetItem"},
        "TasksTable": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"},
        "ControlTable": {"GetItem", "UpdateItem"},
        "HistoryTable": {"PutItem"},
    },
    "SupervisorRole": {
        "TasksTable": {"GetItem", "PutItem", "UpdateItem", "DeleteItem"},
        "TasksTable/index/due": {"Query"},
        "TasksTable/index/failures": {"Query"},
        "ControlTable": {"GetItem", "PutItem", "UpdateItem"},
        "HistoryTable": {"PutItem"},
    },
    **{f"{agent}Role": {"ControlTable": {"GetItem", "PutItem", "UpdateItem"}} for agent in AGENTS},
}


def may_send_to(document: Document, role: str) -> set[str]:
    return {
        queue
        for queue, actions in granted(document, role, "sqs").items()
        if "SendMessage" in actions
    }


def may_read(document: Document, role: str) -> set[str]:
    return {
        queue
        for queue, actions in granted(document, role, "sqs").items()
        if "ReceiveMessage" in actions
    }


def test_no_policy_allows_an_action_or_a_thing_by_wildcard(document: Document) -> None:
    for owner, statement in every_policy(document):
        if statement["Effect"] != "Allow":
            continue
        assert not any("*" in action for action in texts(statement["Action"])), owner
        assert "NotAction" not in statement
        assert "NotResource" not in statement
        if owner == "AlertKey":
            continue  # in a key's own policy '*' is that key
        for resource in items(statement["Resource"]):
            text = target(resource)
            assert "*" not in text or text == REPLY_QUEUES_OF_APPLICATIONS, owner


def grants(node: Json) -> Iterator[Document]:
    """Each statement below a node that allows something, except who may assume a role."""
    if isinstance(node, dict):
        if node.get("Effect") == "Allow":
            yield node
        for key, value in node.items():
            yield from grants(value) if key != "AssumeRolePolicyDocument" else ()
    elif isinstance(node, list):
        for item in node:
            yield from grants(item)


def test_every_grant_is_in_a_policy_that_is_checked_for_wildcards(document: Document) -> None:
    checked = [statement for _, statement in every_policy(document)]
    assert [statement for statement in grants(document) if statement not in checked] == []


def test_no_role_holds_a_policy_of_aws_which_would_name_no_resource(document: Document) -> None:
    for role in of_type(document, "AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_every_statement_says_in_a_sentence_what_it_is_for(document: Document) -> None:
    for owner, statement in every_policy(document):
        sid = statement["Sid"]
        assert isinstance(sid, str)
        assert re.fullmatch(r"([A-Z][a-z]+){2,}", sid), f"{owner}: {sid}"


def test_every_function_has_a_role_of_its_own(document: Document) -> None:
    roles = {
        name: referred(function["Role"])
        for name, function in of_type(document, "AWS::Lambda::Function").items()
    }
    assert roles == {name: f"{name.removesuffix('Function')}Role" for name in roles}


@pytest.mark.parametrize("role", TABLE_ACTIONS)
def test_a_role_may_do_to_tables_exactly_what_its_function_does(
    document: Document, role: str
) -> None:
    assert granted(document, role, "dynamodb") == TABLE_ACTIONS[role]


def test_no_role_may_scan_delete_or_change_a_table(document: Document) -> None:
    for role in of_type(document, "AWS::IAM::Role"):
        for actions in granted(document, role, "dynamodb").values():
            assert not actions & {"Scan", "DeleteTable", "UpdateTable"}


def test_nothing_but_a_task_is_ever_deleted_and_no_agent_may(document: Document) -> None:
    may = {
        (role, table)
        for role in of_type(document, "AWS::IAM::Role")
        for table, actions in granted(document, role, "dynamodb").items()
        if "DeleteItem" in actions
    }
    stack = ("SubmissionRole", "SchedulerRole", "SupervisorRole")
    assert may == {(role, "TasksTable") for role in stack}


def test_agents_cannot_see_tasks_nor_orders(document: Document) -> None:
    for agent in AGENTS:
        assert set(granted(document, f"{agent}Role", "dynamodb")) == {"ControlTable"}


def test_an_agent_may_send_only_its_replies_what_it_rejects_and_its_dead_letters(
    document: Document,
) -> None:
    for agent in AGENTS:
        allowed = may_send_to(document, f"{agent}Role")
        dead = {f"{agent}RequestDeadLetterQueue", f"{agent}UrgentRequestDeadLetterQueue"}
        assert allowed == {f"{agent}ReplyQueue", "RejectedQueue", *dead}


def test_the_supervisor_may_send_to_the_scheduler_and_to_applications_only(
    document: Document,
) -> None:
    allowed = may_send_to(document, "SupervisorRole")
    assert allowed == {"SchedulerQueue", REPLY_QUEUES_OF_APPLICATIONS}


def test_submission_may_start_tasks_reject_events_and_tell_applications(
    document: Document,
) -> None:
    allowed = may_send_to(document, "SubmissionRole")
    others = {"RejectedQueue", "SubmissionDeadLetterQueue", REPLY_QUEUES_OF_APPLICATIONS}
    assert allowed == {"SchedulerQueue"} | others


def test_the_scheduler_may_send_to_every_request_queue(document: Document) -> None:
    requests = {name for name in work_queues(document) if name.endswith("RequestQueue")}
    others = {"SchedulerQueue", "RejectedQueue", REPLY_QUEUES_OF_APPLICATIONS}
    dead = {"SchedulerDeadLetterQueue", *(f"{agent}ReplyDeadLetterQueue" for agent in AGENTS)}
    assert may_send_to(document, "SchedulerRole") == requests | others | dead


def test_a_function_may_put_a_message_with_the_dead_letters_of_the_queues_that_it_reads(
    document: Document,
) -> None:
    def dead_letters_of(queue: str) -> str:
        policy = mapping_of(work_queues(document)[queue]["RedrivePolicy"])
        return referred(policy["deadLetterTargetArn"])

    for role in TABLE_ACTIONS:
        dead = {queue for queue in may_send_to(document, role) if "DeadLetter" in queue}
        assert dead == {dead_letters_of(queue) for queue in may_read(document, role)}, role


def test_a_function_may_read_exactly_the_queues_that_wake_it(document: Document) -> None:
    woken_by: dict[str, set[str]] = {role: set() for role in TABLE_ACTIONS}
    for mapping in of_type(document, "AWS::Lambda::EventSourceMapping").values():
        role = referred(mapping["FunctionName"]).removesuffix("Function") + "Role"
        woken_by[role].add(referred(mapping["EventSourceArn"]))
    assert {role: may_read(document, role) for role in woken_by} == woken_by


def test_an_agent_may_touch_only_the_rows_of_the_control_table_that_are_its_own_to_touch(
    document: Document,
) -> None:
    for agent in AGENTS:
        role, name = f"{agent}Role", agent.lower()
        circuit, rate, calls = f"breaker#{name}", f"rate#{name}", f"calls#{name}#*"

        def keys(action: str, role: str = role) -> set[str] | None:
            return keys_granted(document, role, action, "ControlTable")

        assert keys("GetItem") == {"holds", circuit}
        assert keys("UpdateItem") == {"marks", "holds", circuit, rate, calls}
        assert keys("PutItem") == {circuit}


def test_who_alerts_may_change_the_failure_groups_and_nothing_else_beside_the_leases(
    document: Document,
) -> None:
    for role in ("SchedulerRole", "SupervisorRole"):
        assert keys_granted(document, role, "UpdateItem", "ControlTable") == {"groups"}


def test_all_but_submission_may_alert(document: Document) -> None:
    may = {
        role
        for role in of_type(document, "AWS::IAM::Role")
        if granted(document, role, "sns") == {"AlertTopic": {"Publish"}}
    }
    assert may == {"SchedulerRole", "SupervisorRole", *(f"{agent}Role" for agent in AGENTS)}
    assert {r for r in of_type(document, "AWS::IAM::Role") if granted(document, r, "sns")} == may
    for role in may:
        assert granted(document, role, "kms") == {"AlertKey": {"GenerateDataKey", "Decrypt"}}


def test_every_function_may_write_its_own_log_and_no_other(document: Document) -> None:
    for role in TABLE_ACTIONS:
        own = {role.removesuffix("Role") + "Logs": {"CreateLogStream", "PutLogEvents"}}
        assert granted(document, role, "logs") == own


def test_eventbridge_may_invoke_the_supervisor_and_nothing_else(document: Document) -> None:
    (statement,) = allowed_to(document, "SupervisorScheduleRole")
    assert statement["Action"] == "lambda:InvokeFunction"
    assert referred(statement["Resource"]) == "SupervisorFunction"
    role = of_type(document, "AWS::IAM::Role")["SupervisorScheduleRole"]
    (trust,) = statements(role["AssumeRolePolicyDocument"])
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_alerts_are_encrypted_under_a_key_that_alarms_may_use(document: Document) -> None:
    (topic,) = of_type(document, "AWS::SNS::Topic").values()
    (key,) = of_type(document, "AWS::KMS::Key").values()
    assert referred(topic["KmsMasterKeyId"]) == "AlertKey"
    assert key["EnableKeyRotation"] is True
    services = {
        str(mapping_of(statement["Principal"]).get("Service")): set(texts(statement["Action"]))
        for statement in statements(key["KeyPolicy"])
    }
    assert services["cloudwatch.amazonaws.com"] == {"kms:Decrypt", "kms:GenerateDataKey"}


def test_the_alert_topic_refuses_what_comes_without_tls_and_takes_alarms(
    document: Document,
) -> None:
    (policy,) = of_type(document, "AWS::SNS::TopicPolicy").values()
    refusal, alarms = statements(policy["PolicyDocument"])
    assert refusal["Effect"] == "Deny"
    assert refusal["Principal"] == "*"
    assert refusal["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert "aws:SourceAccount" in mapping_of(mapping_of(alarms["Condition"])["StringEquals"])


def test_operators_who_tell_of_a_hold_are_given_the_rights_that_publishing_needs(
    document: Document,
) -> None:
    page = (TEMPLATE.parent / "docs" / "runbook" / "rights.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `hold`, `release` |")]
    needed = granted(document, "SupervisorRole", "kms")["AlertKey"]
    assert needed
    assert set(re.findall(r"`kms:([A-Za-z]+)`", row)) == needed

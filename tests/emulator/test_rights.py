"""Least privilege for real: the whole demo with IAM enforced, and each role refused the rest.

What the emulator cannot show, and tests/template holds by reading the template instead: which rows
of the ControlTable an agent may touch, since it does not evaluate `dynamodb:LeadingKeys`.
"""

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import boto3
import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from tests.emulator.conftest import PROJECT, DeployedStack, stack_with_iam
from tests.emulator.helpers import PATIENCE
from tests.emulator.rights import (
    ACCOUNT,
    AGENTS,
    FUNCTIONS,
    KEYS,
    REPLIES,
    Call,
    Caller,
    Deployed,
    read_deployed,
)
from tests.project import translate
from tools.demo.observe import Bench
from tools.demo.run import PARAMETERS, pointed_at, send_and_watch
from tools.demo.scenario import CASES, fault_rules, read_events
from tools.demo.watch import RunWatch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_sqs import SQSClient

INDEXES = {f"TasksTable/index/{name}" for name in ("due", "failures", "parked")}

pytestmark = [pytest.mark.stack, pytest.mark.verify]

Answers: TypeAlias = dict[str, dict[Call, bool]]  # by role, whether each call was allowed
OTHER = {"orderId": "refused"}
REPORT = PROJECT / ".cache" / "reports" / "rights.md"


@pytest.fixture(scope="module")
def enforced(session_without_real_aws: None) -> Iterator[DeployedStack]:
    """The stack on an emulator of its own, each function with the rights of its own role."""
    with stack_with_iam(PARAMETERS) as found:
        yield found


@pytest.fixture(autouse=True)
def at_the_emulator(enforced: DeployedStack, no_real_aws: None) -> Iterator[None]:
    """Every client made by a test here talks to that emulator, as its account's root."""
    with pointed_at(enforced.aws.environment):
        yield


@pytest.fixture(scope="module")
def deployed(enforced: DeployedStack) -> Deployed:
    with pointed_at(enforced.aws.environment):
        return read_deployed(enforced.aws.stack, translate())


@pytest.fixture(scope="module")
def answers(enforced: DeployedStack, deployed: Deployed) -> Answers:
    """What the emulator says to every call of every role, tried once; kept as a table too."""
    found: Answers = {}
    with pointed_at(enforced.aws.environment):
        for role in (f"{function}Role" for function in FUNCTIONS):
            caller = Caller(deployed.session(role))
            found[role] = {call: caller.is_allowed(call) for call in deployed.calls(role)}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(as_table(found))
    return found


def as_table(answers: Answers) -> str:
    calls = sorted({call for of_role in answers.values() for call in of_role}, key=str)
    words = {True: "allowed", False: "refused", None: "not tried"}
    heads = "| call |" + "".join(f" {role} |" for role in answers) + "\n"
    lines = [
        f"| {call} |" + "".join(f" {words[of_role.get(call)]} |" for of_role in answers.values())
        for call in calls
    ]
    return heads + "|---" * (len(answers) + 1) + "|\n" + "\n".join(lines) + "\n"


def allowed(answers: Answers, role: str, *actions: str) -> set[str]:
    """What a role may do one of these actions to."""
    return {
        call.target
        for call, may in answers[role].items()
        if may and f"{call.service}:{call.action}" in actions
    }


def refusals(enforced: DeployedStack) -> int:
    """How often a function has logged that AWS refused it a call for good."""
    return enforced.aws.log.read_text().count("CallRefused from ClientError")


def test_the_whole_demo_goes_as_expected_with_iam_enforced(enforced: DeployedStack) -> None:
    sent = read_events(PROJECT / "events", CASES)
    output = io.StringIO()
    watch = RunWatch(Console(file=output), sent)
    bench = Bench(enforced.aws.outputs, enforced.services)
    enforced.services.application.set_faults({"rules": fault_rules(CASES)})
    summary = send_and_watch(bench, sent, watch, PATIENCE * 2)
    assert refusals(enforced) == 0
    assert summary.all_differences() == [], output.getvalue()


def test_each_role_may_make_exactly_the_calls_that_the_template_grants_it(
    deployed: Deployed, answers: Answers
) -> None:
    wrong = [
        f"{role}: {call} was {'allowed' if may else 'refused'}"
        for role, of_role in answers.items()
        for call, may in of_role.items()
        if may != deployed.is_granted(role, call)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_can_destroy_create_list_or_look_through_anything(
    answers: Answers, name: str
) -> None:
    tried = answers[f"{name}Role"]
    may = {f"{call.service}:{call.action}" for call, may in tried.items() if may}
    assert may <= {
        *(f"dynamodb:{verb}Item" for verb in ("Get", "Put", "Update", "Delete")),
        *("dynamodb:BatchGetItem", "dynamodb:Query", "sns:Publish"),
        *(f"sqs:{verb}" for verb in ("SendMessage", "ReceiveMessage", "DeleteMessage")),
        *("sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"),
    }
    assert len({call for call in tried if call.action == "DeleteTable"}) == len(KEYS)
    assert len({call for call in tried if call.action == "Scan"}) == len(KEYS) + len(INDEXES)
    assert len({call for call in tried if call.target == ACCOUNT}) == 11


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_reaches_its_own_queues_and_no_record_of_any_task_or_order(
    answers: Answers, agent: str
) -> None:
    role = f"{agent}Role"
    dead = {f"{agent}RequestDeadLetterQueue", f"{agent}UrgentRequestDeadLetterQueue"}
    to = {f"{agent}ReplyQueue", "RejectedQueue"} | dead
    assert allowed(answers, role, "sqs:SendMessage") == to
    own = {f"{agent}RequestQueue", f"{agent}UrgentRequestQueue"}
    assert allowed(answers, role, "sqs:ReceiveMessage", "sqs:DeleteMessage") == own
    every_access = {f"dynamodb:{call.action}" for call in answers[role] if call.target in KEYS}
    assert len(every_access) == 11
    assert allowed(answers, role, *every_access) == {"ControlTable"}


def test_submission_starts_tasks_and_can_reach_no_agent_and_alert_nobody(answers: Answers) -> None:
    role = "SubmissionRole"
    to = {"SchedulerQueue", "RejectedQueue", "SubmissionDeadLetterQueue", REPLIES}
    assert allowed(answers, role, "sqs:SendMessage") == to
    assert allowed(answers, role, "sqs:ReceiveMessage") == {"SubmissionQueue"}
    written = {"OrdersTable", "TasksTable", "ControlTable"}
    assert allowed(answers, role, "dynamodb:PutItem") == written
    assert allowed(answers, role, "sns:Publish", "dynamodb:Query") == set()


def test_the_supervisor_sends_to_the_scheduler_and_to_no_agent_and_reads_no_queue(
    answers: Answers,
) -> None:
    role = "SupervisorRole"
    # A signal that nobody read is owed until a rejected message says so.
    to = {"SchedulerQueue", "RejectedQueue", REPLIES}
    assert allowed(answers, role, "sqs:SendMessage") == to
    assert allowed(answers, role, "sqs:ReceiveMessage", "sqs:DeleteMessage") == set()
    actions = {call.action for call, may in answers[role].items() if may}
    of_orders = {a for a in actions if "OrdersTable" in allowed(answers, role, f"dynamodb:{a}")}
    # The expiry of an order that has ended, and the content for a bulk run that corrects it.
    assert of_orders == {"GetItem", "UpdateItem"}
    # What became of the commands of a bulk run is in the histories of its orders.
    assert allowed(answers, role, "dynamodb:Query") == INDEXES | {"HistoryTable"}


def test_the_scheduler_puts_no_order_and_reads_no_request(answers: Answers) -> None:
    role = "SchedulerRole"
    # Of ControlTable the rows `search`, `groups` and `marks`, which the template's test holds: the
    # emulator does not look at leading keys.
    written = {"TasksTable", "HistoryTable", "ControlTable"}
    assert allowed(answers, role, "dynamodb:PutItem") == written
    updated = allowed(answers, role, "dynamodb:UpdateItem")
    # An order gets an expiry, and its contents are erased.
    assert updated == {"TasksTable", "HistoryTable", "ControlTable", "OrdersTable"}
    read = {"SchedulerQueue", *(f"{agent}ReplyQueue" for agent in AGENTS)}
    assert allowed(answers, role, "sqs:ReceiveMessage", "sqs:DeleteMessage") == read


def test_nobody_but_a_timer_may_take_the_roles_of_timers(
    deployed: Deployed,
) -> None:
    roles = {name for name in deployed.resources if name.endswith("Role")}
    timers = {"SupervisorScheduleRole", "AlertHeartbeatRole", "RecurringOrderRole"}
    assert roles == {*(f"{name}Role" for name in FUNCTIONS), *timers}
    for role in timers:
        with pytest.raises(ClientError, match="AccessDenied"):
            deployed.session(role)


def test_a_function_can_do_nothing_once_its_role_grants_nothing(
    enforced: DeployedStack, deployed: Deployed
) -> None:
    """So what the demo did, its functions did with their roles' rights and with no others."""
    iam: IAMClient = boto3.client("iam")
    role = deployed.resources["SubmissionRole"]
    own = {"RoleName": role, "PolicyName": "WhatItMayDo"}
    granted = iam.get_role_policy(**own)["PolicyDocument"]
    before = refusals(enforced)
    iam.delete_role_policy(**own)
    try:
        enforced.submit(json.loads((PROJECT / "events" / "good.json").read_text()) | OTHER)
        enforced.wait_for(
            "submission to be refused",
            lambda: refusals(enforced) > before,
            PATIENCE,
        )
        assert enforced.task(OTHER["orderId"]) == {}
    finally:
        iam.put_role_policy(**own, PolicyDocument=json.dumps(granted))


def test_a_queue_of_the_stack_refuses_even_its_owner_without_tls(enforced: DeployedStack) -> None:
    sqs: SQSClient = boto3.client("sqs")
    url = enforced.output("SchedulerQueueUrl")
    sqs.get_queue_attributes(QueueUrl=url)

    def says_it_came_without(request: object, **_: object) -> None:
        request.headers["X-Forwarded-Proto"] = "http"  # type: ignore[attr-defined] # as a proxy does

    sqs.meta.events.register("before-sign.sqs", says_it_came_without)
    with pytest.raises(ClientError, match="AccessDenied"):
        sqs.get_queue_attributes(QueueUrl=url)


def test_the_emulator_still_takes_any_row_for_an_agents_own(
    enforced: DeployedStack, deployed: Deployed
) -> None:
    """When this fails, the emulator knows LeadingKeys: then rows can be tried here as well."""
    dynamodb: DynamoDBClient = deployed.session("InventoryRole").client("dynamodb")
    found = dynamodb.get_item(
        TableName=enforced.output("ControlTableName"), Key={"ControlId": {"S": "breaker#payment"}}
    )
    assert "Item" not in found

"""The policies for people with IAM enforced: each user can do what its policies say, and no more.

The emulator does not evaluate `dynamodb:LeadingKeys`; tests/console/test_personal_policies.py does.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from roundsman.agents.callbacks import callback_token
from roundsman.client import CallRefused, Client, InvalidCall
from roundsman.wire.messages import AgentRequest
from roundsman_console.aws.resources import stack_resources
from roundsman_console.base.errors import UNCONFIRMED
from tests.emulator.conftest import PROJECT, DeployedStack, stack_with_iam
from tests.emulator.helpers import PATIENCE
from tests.emulator.recording import LONGEST, ROUNDSMAN
from tools.demo.run import PARAMETERS, pointed_at

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_iam import IAMClient

pytestmark = [pytest.mark.stack, pytest.mark.verify]

POLICIES = {
    "viewer": ("ViewerPolicy",),
    "operator": ("ViewerPolicy", "OperatorPolicy"),
    "submitter": ("SubmitterPolicy",),
    "answerer": ("AnswererPolicy",),
}
REFUSED_BY_THE_EMULATOR = {"cloudwatch:DescribeAlarms", "lambda:PutFunctionConcurrency"}
"""It takes a read of a function's concurrency for a write, and knows no resource of alarms."""
EARLIER = AgentRequest(
    task_id="ord-1",
    workflow="order_fulfilment",
    step="charge_card",
    operation="perform",
    lock="earlier",
    idempotency_key="earlier",
    attempt=1,
    complete_by=0,
    input={},
    results={},
    sent_at=0,
)
"""An attempt whose answer changes nothing."""


@pytest.fixture(scope="module")
def enforced(session_without_real_aws: None) -> Iterator[DeployedStack]:
    """The stack on an emulator of its own that enforces IAM, with one order in it."""
    with stack_with_iam(PARAMETERS) as stack:
        with pointed_at(stack.aws.environment):
            order = json.loads((PROJECT / "events" / "good.json").read_text())
            stack.submit({**order, "orderId": "ord-1"})
            stack.submit({**order, "orderId": "ord-2", "processing": {"processIn": 86_400}})
            stack.wait_for(
                "the orders",
                lambda: (
                    stack.task("ord-1").get("State") == "Completed"
                    and stack.task("ord-2").get("State") == "Scheduled"
                ),
                PATIENCE,
            )
        yield stack


@pytest.fixture(scope="module")
def keys(enforced: DeployedStack) -> dict[str, Mapping[str, str]]:
    """The access keys of a user with the policies of each kind."""
    with pointed_at(enforced.aws.environment):
        iam: IAMClient = boto3.client("iam")
        stacks: CloudFormationClient = boto3.client("cloudformation")
        found = stack_resources(stacks, enforced.aws.stack)
        arns = {each.name: each.physical_id for each in found}
        made: dict[str, Mapping[str, str]] = {}
        for user, policies in POLICIES.items():
            iam.create_user(UserName=user)
            for policy in policies:
                iam.attach_user_policy(UserName=user, PolicyArn=arns[policy])
            key = iam.create_access_key(UserName=user)["AccessKey"]
            made[user] = {
                "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            }
        return made


def types(
    stack: DeployedStack, key: Mapping[str, str], *words: str
) -> "subprocess.CompletedProcess[str]":
    """One command of a user, as a process of its own."""
    environment = {**os.environ, **stack.aws.environment, **key, "COLUMNS": "200"}
    environment.pop("AWS_SESSION_TOKEN", None)  # that of the tests' own account
    return subprocess.run(
        [ROUNDSMAN, *words],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def test_a_viewer_reads_and_sends_nothing(
    enforced: DeployedStack, keys: dict[str, Mapping[str, str]]
) -> None:
    for words in (("show", "ord-1"), ("ls",), ("groups", "ls"), ("agents",), ("why", "ord-1")):
        result = types(enforced, keys["viewer"], *words)
        assert result.returncode == 0, (words, result.stdout + result.stderr)
    doctor = types(enforced, keys["viewer"], "doctor", "--deep")
    assert "Checked" in doctor.stdout
    refused = set(re.findall(r"authorized to perform: ([\w:]+)", " ".join(doctor.stdout.split())))
    assert refused == REFUSED_BY_THE_EMULATOR
    for sent in (
        ("cancel", "ord-2", "--yes", "--reason", "x"),
        ("hold", "payment", "--for", "10m", "--yes", "--reason", "x"),
        ("submit", "events/good.json"),
    ):
        result = types(enforced, keys["viewer"], *sent)
        assert result.returncode == 1, (sent, result.stdout + result.stderr)
        assert "AWS refused" in result.stderr, sent


def test_an_operator_holds_releases_submits_and_cancels(
    enforced: DeployedStack, keys: dict[str, Mapping[str, str]]
) -> None:
    for words in (
        ("hold", "payment", "--for", "10m", "--yes", "--reason", "x"),
        ("release", "payment"),
        ("submit", "events/good.json"),
        ("cancel", "ord-2", "--yes", "--reason", "x"),
    ):
        result = types(enforced, keys["operator"], *words)
        assert result.returncode == 0, (words, result.stdout + result.stderr)
    assert enforced.task("ord-2")["State"] == "Cancelled"


def test_a_submitter_sends_orders_and_sees_no_list(
    enforced: DeployedStack, keys: dict[str, Mapping[str, str]], tmp_path: Path
) -> None:
    order = json.loads((PROJECT / "events" / "good.json").read_text())
    file = tmp_path / "order.json"
    file.write_text(json.dumps({**order, "orderId": "ord-4"}))
    sent = types(enforced, keys["submitter"], "submit", str(file))
    assert sent.returncode == 0, sent.stdout + sent.stderr
    # It may not read the contents of a stored order, so it does not know whether this repeats it.
    again = types(enforced, keys["submitter"], "submit", str(file))
    assert again.returncode == UNCONFIRMED, again.stdout + again.stderr
    result = types(enforced, keys["submitter"], "ls")
    assert result.returncode == 1
    assert "AWS refused" in result.stderr


def test_an_answerer_reads_what_waits_sends_answers_and_sees_no_list(
    enforced: DeployedStack, keys: dict[str, Mapping[str, str]]
) -> None:
    with pointed_at({**enforced.aws.environment, **keys["answerer"]}):
        client = Client.of_stack(enforced.aws.stack)
        with pytest.raises(InvalidCall, match="does not wait for a callback: it is Processed"):
            client.answer(order_id="ord-1", step="charge_card")
        client.answer(callback_token(EARLIER, "payment"))
        with pytest.raises(CallRefused):
            client.submit({"orderId": "ord-3"})
    result = types(enforced, keys["answerer"], "ls")
    assert result.returncode == 1
    assert "AWS refused" in result.stderr

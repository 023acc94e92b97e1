"""`roundsman preflight`: each check with what it finds wrong, its words and the exit code.

The account is a fake that answers each call of AWS; what a deployment needs is read from the
project's own template.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import boto3
import pytest
from typer.testing import CliRunner, Result

from roundsman_console.main import app
from roundsman_dev.preflight.checks import (
    PlannedStack,
    check_keys,
    users_of_keys,
)
from tests.console.schemas import assert_schema

PROJECT = Path(__file__).parents[2]
ADDRESSES = [
    word
    for name in ("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl")
    for word in ("--param", f"{name}=https://{name.lower()}.test")
]
ACCOUNT, REGION = "123456789012", "eu-west-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1a2b"
NO_STACK: Mapping[str, object] = {
    "Error": {"Code": "ValidationError", "Message": "Stack roundsman does not exist"}
}
DENIED: Mapping[str, object] = {"Error": {"Code": "AccessDenied", "Message": "not yours"}}

NEEDED = 4 * (10 + 5 + 10) + 10 + 10 + 1
"""The most instances of the example: those of its mappings, and the supervisor."""
NEW_ACCOUNT: Mapping[str, object] = {
    "AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
}

Answer: TypeAlias = Mapping[str, object]


def functions(*names: str) -> Mapping[str, object]:
    """The answer of ListFunctions."""
    return {"Functions": [{"FunctionName": name} for name in names]}


def deployed(status: str = "UPDATE_COMPLETE", **parameters: str) -> dict[str, Any]:
    """The answer of DescribeStacks for a stack of Roundsman."""
    stack = {
        "StackName": "roundsman",
        "CreationTime": "2026-01-01T00:00:00Z",
        "StackId": "arn:aws:cloudformation:eu-west-1:111122223333:stack/shop/0a1b",
        "StackStatus": status,
        "Outputs": [
            {"OutputKey": "TasksTableName", "OutputValue": "tasks"},
            {"OutputKey": "AlertTopicArn", "OutputValue": f"arn:aws:sns:{REGION}:{ACCOUNT}:a"},
        ],
        "Parameters": [
            {"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()
        ],
    }
    return {"Stacks": [stack]}


def no_stack(asked: Mapping[str, object]) -> Answer:
    """The answer of DescribeStacks in an account without stacks."""
    return NO_STACK if asked.get("StackName") else {"Stacks": []}


@dataclass
class Account:
    """A fake AWS account: an answer, an error or a function for each operation."""

    answers: dict[str, Answer | Callable[[Mapping[str, object]], Answer]] = field(
        default_factory=lambda: {
            "GetCallerIdentity": {
                "Account": ACCOUNT,
                "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/run-1",
            },
            "DescribeStacks": no_stack,
            "GetAccountSettings": {
                "AccountLimit": {
                    "ConcurrentExecutions": 2000,
                    "UnreservedConcurrentExecutions": 1000,
                }
            },
        }
    )
    called: list[str] = field(default_factory=list)

    def answer(self, model: object, **_: object) -> Any:  # noqa: ANN401  # what botocore makes of it
        name = str(getattr(model, "name", ""))
        asked = self.asked
        self.called.append(name)
        found = self.answers.get(name, DENIED)
        answer = found(asked) if callable(found) else found
        status = 400 if "Error" in answer else 200
        return SimpleNamespace(status_code=status), {
            "ResponseMetadata": {"HTTPStatusCode": status},
            **answer,
        }

    asked: Mapping[str, object] = field(default_factory=dict)

    def remember(self, params: dict[str, object], **_: object) -> None:
        self.asked = dict(params)


@pytest.fixture(scope="module")
def session() -> boto3.Session:
    """One session, since each reads the descriptions of services anew."""
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)


@pytest.fixture
def account(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """The account that every call of boto3 goes to."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.chdir(PROJECT)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    found = Account()
    session.events.register("provide-client-params", found.remember)
    session.events.register("before-call", found.answer)
    yield found
    session.events.unregister("provide-client-params", found.remember)
    session.events.unregister("before-call", found.answer)


def types(*arguments: str) -> Result:
    """What the command does, in the project's own folder."""
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["preflight", *arguments])


def checked(*arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    """The exit code, and each check by its name."""
    result = types(*ADDRESSES, *arguments, "--json")
    found = json.loads(result.stdout)
    assert_schema("preflight", found)
    assert found["ready"] is (result.exit_code == 0)
    return result.exit_code, {one["check"]: one for one in found["checks"]}


@pytest.mark.exhaustive
def test_an_account_with_room_for_the_stack_is_ready(account: Account) -> None:
    code, found = checked()
    assert code == 0
    status = {name: one["status"] for name, one in found.items()}
    assert status.pop("alerts") == "warning", "no address is given"
    assert set(status.values()) == {"ok"}
    assert "they are" not in str(found["concurrency"]["sentence"])


class TestChecks:
    """Each check with what it finds."""

    def test_what_the_caller_may_not_read_is_not_checked_and_names_the_action(
        self, account: Account
    ) -> None:
        account.answers["GetAccountSettings"] = DENIED
        code, found = checked()
        assert code == 0
        assert found["concurrency"]["status"] == "unchecked"
        refused = "AWS refused GetAccountSettings with these credentials"
        assert refused in str(found["concurrency"]["details"])
        assert checked("--strict")[0] == 1

    @pytest.mark.parametrize(
        ("free", "status", "code"),
        [(131, "ok", 0), (130, "warning", 0), (105, "fault", 1)],
    )
    def test_the_concurrency_is_compared_with_the_sum_of_all_caps(
        self, account: Account, free: int, status: str, code: int
    ) -> None:
        account.answers["ListFunctions"] = functions("roundsman-Payment-1A", "thumbnails")
        # The mappings of the example, and the supervisor, which no queue starts.
        needed = NEEDED
        free = {131: needed * 2, 130: needed, 105: needed - 1}[free]
        account.answers["GetAccountSettings"] = {
            "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": free}
        }
        found_code, found = checked()
        assert (found_code, found["concurrency"]["status"]) == (code, status)
        assert f"at most {needed} instances" in str(found["concurrency"]["sentence"])

    @pytest.mark.parametrize(
        ("answer", "detail"),
        [
            (None, "1 function of other stacks share them: thumbnails."),
            (DENIED, "is not known: AWS refused ListFunctions with these credentials"),
        ],
    )
    def test_a_new_account_is_a_fault_beside_functions_of_others_and_if_they_cannot_be_listed(
        self, account: Account, answer: Answer | None, detail: str
    ) -> None:
        account.answers["GetAccountSettings"] = NEW_ACCOUNT
        others = functions("roundsman-Payment-1A", "thumbnails")
        account.answers["ListFunctions"] = answer or others
        code, found = checked()
        assert (code, found["concurrency"]["status"]) == (1, "fault")
        assert detail in str(found["concurrency"]["details"])

    def test_a_stack_whose_name_begins_with_that_of_this_one_is_another(
        self, account: Account
    ) -> None:
        account.answers["GetAccountSettings"] = NEW_ACCOUNT
        others = ("roundsman-prod-Payment-1A", "roundsman-eval-Engine-1B")
        account.answers["ListFunctions"] = functions("roundsman-Payment-1A", *others)
        code, found = checked()
        assert (code, found["concurrency"]["status"]) == (1, "fault")
        assert "2 functions of other stacks share them" in str(found["concurrency"]["details"])

    def test_the_functions_of_others_are_listed_only_if_it_matters(self, account: Account) -> None:
        checked()
        assert "ListFunctions" not in account.called

    @pytest.mark.parametrize(
        ("given", "kept", "finding"),
        [
            ("later", None, "protection-off"),
            pytest.param(None, "later", "protection-off", marks=pytest.mark.exhaustive),
            ("later", "true", "protection-lost"),
            pytest.param(None, "true", None, marks=pytest.mark.exhaustive),
        ],
    )
    def test_protection_never_goes_by_a_default(
        self, account: Account, given: str | None, kept: str | None, finding: str | None
    ) -> None:
        kept_values = {} if kept is None else {"DeletionProtection": kept}
        account.answers["DescribeStacks"] = deployed(**kept_values)
        account.answers["ListSubscriptionsByTopic"] = {"Subscriptions": []}
        options = () if given is None else ("--param", f"DeletionProtection={given}")
        assert checked(*options)[1]["stack"]["finding"] == finding

    def test_a_stack_that_was_only_planned_is_created_by_its_first_deployment(
        self, account: Account
    ) -> None:
        account.answers["DescribeStacks"] = deployed("REVIEW_IN_PROGRESS")
        account.answers["ListSubscriptionsByTopic"] = {"Subscriptions": []}
        found = checked("--param", "DeletionProtection=true")[1]["stack"]
        assert str(found["do"]).startswith("Set DeletionProtection to later")
        assert checked("--param", "DeletionProtection=later")[1]["stack"]["status"] == "ok"

    @pytest.mark.parametrize(
        ("subscription", "finding"),
        [
            (None, "alerts-unheard"),
            ("PendingConfirmation", "subscriptions-pending"),
            ("arn:aws:sns:x", None),
        ],
    )
    def test_the_subscriptions_of_a_deployed_stack_must_be_confirmed(
        self, account: Account, subscription: str | None, finding: str | None
    ) -> None:
        listed = [] if subscription is None else [{"SubscriptionArn": subscription}]
        account.answers["DescribeStacks"] = deployed()
        account.answers["ListSubscriptionsByTopic"] = {"Subscriptions": listed}
        assert checked()[1]["alerts"]["finding"] == finding

    def test_a_parameter_without_value_or_with_a_wrong_one_is_a_fault(
        self, account: Account
    ) -> None:
        result = types("--param", "LogLevel=LOUD", "--param", "Colour=red", "--json")
        found = {one["check"]: one for one in json.loads(result.stdout)["checks"]}["parameters"]
        assert (result.exit_code, found["status"]) == (1, "fault")
        details = " ".join(found["details"])
        assert "InventoryUrl has no default and no value." in details
        assert "template.yaml has no parameter Colour; it has: AlertEmail, " in details
        assert "LogLevel cannot be 'LOUD': it must be one of " in details
        assert "(Engine.LogLevel)" in details

    def test_a_deployed_stack_keeps_the_values_that_it_is_not_given(self, account: Account) -> None:
        names = ("InventoryUrl", "PaymentUrl", "ShippingUrl", "MailUrl")
        account.answers["DescribeStacks"] = deployed(**dict.fromkeys(names, "https://a.test"))
        account.answers["ListSubscriptionsByTopic"] = {"Subscriptions": []}
        result = types("--json")
        found = {one["check"]: one for one in json.loads(result.stdout)["checks"]}["parameters"]
        assert found["status"] == "ok"

    def test_a_stack_that_may_not_be_read_is_not_checked(self, account: Account) -> None:
        account.answers["DescribeStacks"] = DENIED
        code, found = checked()
        assert code == 0
        for name in ("stack", "alerts", "orders"):
            assert found[name]["status"] == "unchecked"
            assert "AWS refused DescribeStacks" in str(found[name]["details"])

    def test_an_address_of_the_documentation_is_a_warning(self, account: Account) -> None:
        code, found = checked("--param", "AlertEmail=on-call@example.com")
        assert (code, found["parameters"]["status"]) == (0, "warning")
        assert found["parameters"]["details"] == ["AlertEmail is on-call@example.com."]

    def test_without_credentials_or_region_nothing_else_is_asked(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account.answers["GetCallerIdentity"] = DENIED
        code, found = checked()
        assert (code, found["account"]["finding"]) == (1, "caller-unknown")
        assert set(found) == {"name", "account"}
        assert account.called == ["GetCallerIdentity"]
        monkeypatch.delenv("AWS_DEFAULT_REGION")
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session())
        monkeypatch.setattr(
            boto3, "Session", lambda: SimpleNamespace(region_name=None), raising=True
        )
        assert checked()[1]["account"]["finding"] == "region-unset"

    def test_a_version_of_a_deployment_that_failed_is_named(self, account: Account) -> None:
        stack = deployed(DeletionProtection="true")
        output = {"OutputKey": "PaymentFunctionName", "OutputValue": "shop-Payment"}
        stack["Stacks"][0]["Outputs"].append(output)
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:shop-Payment"
        account.answers |= {
            "DescribeStacks": stack,
            "GetFunctionConfiguration": {"Version": "7", "FunctionArn": f"{arn}:live"},
            "ListVersionsByFunction": {
                "Versions": [{"Version": number} for number in ("$LATEST", "7", "8")]
            },
            "ListTags": {"Tags": {}},
        }
        code, found = checked()
        assert (code, found["versions"]["status"]) == (0, "warning")
        assert found["versions"]["details"] == ["Payment: version 8 is newer than 7, which runs"]
        assert str(found["versions"]["do"]).endswith(
            "for v in 8; do aws lambda delete-function --function-name shop-Payment "
            '--qualifier "$v"; done;'
        )
        account.answers["ListTags"] = {"Tags": {"roundsman:went-back-from": "8"}}
        assert checked()[1]["versions"]["status"] == "ok"
        account.answers["ListTags"] = DENIED
        assert checked()[1]["versions"]["status"] == "unchecked"

    def test_orders_that_may_not_be_read_are_not_checked(self, account: Account) -> None:
        stack = deployed()
        output = {"OutputKey": "ControlTableName", "OutputValue": "control"}
        stack["Stacks"][0]["Outputs"].append(output)
        account.answers["DescribeStacks"] = stack
        found = checked()[1]["orders"]
        assert found["status"] == "unchecked"
        assert "AWS refused GetItem with these credentials" in str(found["details"])

    def test_the_text_has_a_line_for_each_check_and_a_summary(self, account: Account) -> None:
        result = types(*ADDRESSES)
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert lines[0] == "ok           name  samconfig.toml names the stack roundsman."
        assert lines[-1] == ("Ready to deploy roundsman: 9 ok, 1 warning, 0 fault, 0 not checked.")
        account.answers["GetAccountSettings"] = {"AccountLimit": {"ConcurrentExecutions": 10}}
        refused = types(*ADDRESSES)
        assert refused.exit_code == 1
        assert "- SubmissionQueue: 10" in refused.stdout
        assert refused.stdout.splitlines()[-1].startswith("Not ready to deploy roundsman: ")


CONFIG = """
[default.deploy.parameters]
stack_name = "a-name-that-is-longer-than-26-characters"
capabilities = "CAPABILITY_IAM"
[prod.global.parameters]
stack_name = "shop"
region = "us-east-2"
[prod.deploy.parameters]
capabilities = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
role_arn = "arn:aws:iam::123456789012:role/cloudformation"
parameter_overrides = "file://prod.yaml"
[bare.deploy.parameters]
capabilities = "CAPABILITY_IAM"
"""


@pytest.fixture
def project(tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's templates with another samconfig.toml."""
    for name in ("template.yaml", "stacks", "layers", "functions"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "samconfig.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_that_a_nested_stack_refuses_is_a_fault(project: Path) -> None:
    code, found = checked()
    assert (code, found["name"]["status"]) == (1, "fault")
    assert "must be a stack name of at most 26 characters" in str(found["name"]["details"])


@pytest.mark.exhaustive
def test_an_environment_has_its_stack_region_role_and_parameters(
    project: Path, account: Account
) -> None:
    (project / "prod.yaml").write_text("LogLevel: DEBUG\n")
    code, found = checked("--config-env", "prod")
    assert (code, found["name"]["status"]) == (0, "ok")
    assert "in us-east-2" in str(found["account"]["sentence"])
    assert str(found["parameters"]["sentence"]).startswith("5 values given")


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ("none", "samconfig.toml has no environment none; it has: default, prod, bare."),
        ("bare", "samconfig.toml sets no stack_name in the environment bare."),
        ("prod", "file://prod.yaml was not found"),
    ],
)
def test_a_configuration_that_names_no_stack_is_one_sentence(
    project: Path, environment: str, sentence: str
) -> None:
    result = types("--config-env", environment)
    assert result.exit_code == 1
    assert sentence in " ".join(result.stderr.split())


def test_a_recurring_order_of_one_environment_is_checked(project: Path) -> None:
    """Its parameters have defaults for the other environments, which `roundsman check` reads."""
    template = (PROJECT / "template.yaml").read_text()
    (project / "template.yaml").unlink()
    (project / "template.yaml").write_text(
        template.replace(
            "Parameters:\n",
            "Parameters:\n  When: {Type: String, Default: rate(1 day)}\n"
            "  Order: {Type: String, Default: '{}'}\n",
            1,
        ).replace(
            "\nOutputs:\n",
            "\n  Weekly:\n    Type: AWS::Serverless::Application\n    Properties:\n"
            "      Location: stacks/schedule.yaml\n      Parameters:\n"
            "        Engine: !GetAtt Engine.Outputs.ForSchedules\n"
            "        Schedule: !Ref When\n        Order: !Ref Order\n\nOutputs:\n",
            1,
        )
    )
    run = '"run": "<aws.scheduler.scheduled-time>"'
    (project / "prod.yaml").write_text(
        f'When: rate(1 days)\nOrder: \'{{"orderId": "weekly", "processing": {{{run}}}}}\'\n'
    )
    code, found = checked("--config-env", "prod")
    assert (code, found["parameters"]["status"]) == (1, "fault")
    details = found["parameters"]["details"]
    assert isinstance(details, list)
    assert details[0] == "Weekly: Schedule is 'rate(1 days)': write day after 1: rate(1 day)"
    assert all(each.startswith("Weekly: Order would be rejected: ") for each in details[1:])
    assert len(details) > 1


# --- keys --------------------------------------------------------------------------------------

POLICY = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:*",
        },
        {
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        },
    ]
}


@pytest.fixture
def with_key(project: Path, account: Account) -> Account:
    """A template whose topic and tables have a key that a parameter names."""
    template = (PROJECT / "template.yaml").read_text()
    (project / "template.yaml").unlink()
    (project / "template.yaml").write_text(
        template.replace("Parameters:\n", "Parameters:\n  Key: {Type: String}\n", 1).replace(
            "\nResources:\n",
            "\nResources:\n"
            "  Other: {Type: 'AWS::SNS::Topic', Properties: {KmsMasterKeyId: !Ref Key}}\n",
            1,
        )
    )
    account.answers["GetKeyPolicy"] = {"Policy": json.dumps(POLICY)}
    return account


def keys() -> dict[str, object]:
    return checked("--param", f"Key={KEY}")[1]["keys"]


@pytest.mark.exhaustive
def test_a_key_that_is_enabled_and_lets_alarms_use_it_is_ok(with_key: Account) -> None:
    assert keys()["status"] == "ok"


def test_a_key_policy_that_lacks_the_statement_of_alarms_is_a_fault(with_key: Account) -> None:
    without = {"Statement": POLICY["Statement"][:1]}
    with_key.answers["GetKeyPolicy"] = {"Policy": json.dumps(without)}
    found = keys()
    assert found["status"] == "fault"
    assert "does not let cloudwatch.amazonaws.com use it" in str(found["details"])


@pytest.mark.parametrize(
    ("actions", "enough"),
    [
        (["kms:Decrypt", "kms:GenerateDataKey*"], True),
        ("kms:*", True),
        (["kms:Decrypt"], False),
        (["kms:GenerateDataKey"], False),
    ],
)
def test_alarms_need_two_actions_on_a_key(actions: object, enough: bool) -> None:
    principal = {"Service": "cloudwatch.amazonaws.com"}
    allow = {"Effect": "Allow", "Principal": principal, "Action": actions}
    assert check_keys({KEY: {"Statement": allow}}).status == ("ok" if enough else "fault")
    denied = {KEY: {"Statement": [{**allow, "Effect": "Deny"}]}}
    assert check_keys(denied).status == "fault"


SENDING = ["sns.amazonaws.com", "s3.amazonaws.com"]


def planned_with(*services: str) -> PlannedStack:
    """A stack whose topic and queue of order events are under one key."""
    return PlannedStack(
        stack="shop",
        environment="prod",
        topic_keys=[KEY],
        order_keys=[KEY],
        event_services=services,
    )


def test_services_that_send_events_need_the_key_of_the_queue() -> None:
    assert users_of_keys(planned_with()) == {KEY: ["cloudwatch.amazonaws.com"]}
    needed = users_of_keys(planned_with(*SENDING))
    assert needed == {KEY: ["cloudwatch.amazonaws.com", *SENDING]}
    other = replace(planned_with(*SENDING), topic_keys=[])
    assert users_of_keys(other) == {KEY: SENDING}
    assert users_of_keys(replace(planned_with(*SENDING), order_keys=[], topic_keys=[])) == {}


def test_a_key_policy_that_does_not_admit_a_service_that_sends_events_is_a_fault() -> None:
    needed = users_of_keys(planned_with(*SENDING))
    found = check_keys({KEY: POLICY}, needed)
    assert found.status == "fault"
    assert found.sentence == (
        "No event of sns.amazonaws.com becomes an order; No event of s3.amazonaws.com becomes an "
        "order under 1 KMS key."
    )
    assert [one.split(" does not let ")[1] for one in found.details] == [
        f"{service} use it (kms:Decrypt, kms:GenerateDataKey)." for service in SENDING
    ]
    admits = {
        "Effect": "Allow",
        "Principal": {"Service": SENDING},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    }
    whole = {"Statement": [*POLICY["Statement"], admits]}
    assert check_keys({KEY: whole}, needed).status == "ok"
    of_one = {**admits, "Principal": {"Service": SENDING[0]}}
    partly = check_keys({KEY: {"Statement": [*POLICY["Statement"], of_one]}}, needed)
    assert partly.sentence == "No event of s3.amazonaws.com becomes an order under 1 KMS key."


@pytest.mark.parametrize(("admitted", "status"), [(SENDING, "ok"), (SENDING[:1], "fault")])
def test_preflight_reads_the_sources_and_the_key_of_the_template(
    project: Path, account: Account, admitted: list[str], status: str
) -> None:
    template = (PROJECT / "template.yaml").read_text()
    (project / "template.yaml").unlink()
    (project / "template.yaml").write_text(
        template.replace(
            "        WorkflowsLayer: !Ref WorkflowsLayer\n",
            "        WorkflowsLayer: !Ref WorkflowsLayer\n"
            f"        EncryptionKey: {KEY}\n"
            "        SubmitterSources: !Sub arn:aws:sns:${AWS::Region}:${AWS::AccountId}:orders,"
            "arn:aws:s3:::uploads\n",
            1,
        )
    )
    principals = ["cloudwatch.amazonaws.com", *admitted]
    allow = {"Effect": "Allow", "Principal": {"Service": principals}, "Action": "kms:*"}
    account.answers["GetKeyPolicy"] = {"Policy": json.dumps({"Statement": [allow]})}
    assert checked()[1]["keys"]["status"] == status


OTHER = "999999999999"


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        (f"arn:aws:sns:${{AWS::Region}}:{OTHER}:orders", "topic of SNS"),
        (f"arn:aws:events:${{AWS::Region}}:{OTHER}:rule/orders", "rule of EventBridge"),
        (f"arn:aws:sns:${{AWS::Region}}:{ACCOUNT}:orders,arn:aws:s3:::uploads", ""),
    ],
)
def test_a_source_of_another_account_is_a_fault_before_anything_is_created(
    project: Path, account: Account, listed: str, kind: str
) -> None:
    layer = "        WorkflowsLayer: !Ref WorkflowsLayer\n"
    template = (PROJECT / "template.yaml").read_text()
    (project / "template.yaml").unlink()
    (project / "template.yaml").write_text(
        template.replace(layer, f"{layer}        SubmitterSources: !Sub {listed}\n", 1)
    )
    _, found = checked()
    parameters = found["parameters"]
    assert parameters["status"] == ("fault" if kind else "ok")
    wrong = f"SubmitterSources of the block Engine lists a {kind} of the account {OTHER}: "
    assert (wrong in str(parameters["details"])) is bool(kind)


@pytest.mark.exhaustive
def test_a_key_that_may_not_be_read_is_not_checked(with_key: Account) -> None:
    with_key.answers["GetKeyPolicy"] = DENIED
    found = keys()
    assert found["status"] == "unchecked"
    assert "AWS refused GetKeyPolicy" in str(found["details"])

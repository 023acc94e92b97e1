"""`roundsman changes`: what AWS is asked, what its answers become, and the exit code.

AWS is a fake that answers as these pages of its reference of CloudFormation say: CreateChangeSet,
DescribeChangeSet, ResourceChange, ExecuteChangeSet, GetTemplate, DescribeStackEvents.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from roundsman_console.base.errors import FAILED, NOT_FOUND, InspectorError
from roundsman_console.main import app
from roundsman_dev.changes import package as packaging
from roundsman_dev.changes.compare import Action, ResourceChange
from roundsman_dev.changes.package import package
from roundsman_dev.changes.review import Review
from roundsman_dev.changes.text import print_review
from tests.console.schemas import assert_schema

STACK, ENGINE = "arn:aws:cloudformation:x:1:stack/shop/1", "arn:aws:cloudformation:x:1:stack/e/2"
MADE = "arn:aws:cloudformation:x:1:changeSet/roundsman-1/3"
INNER = "arn:aws:cloudformation:x:1:changeSet/roundsman-1-Engine/4"
HOST = "https://s3.x.amazonaws.com"
BUSY = "https://s3.x.amazonaws.com/code/shop/engine.template"


def engine(queue: str = "orders", *statements: object, kind: str = "AWS::SQS::Queue") -> Any:  # noqa: ANN401  # a template
    return {
        "Parameters": {"Stack": {"Type": "String"}},
        "Resources": {
            "Orders": {"Type": kind, "Properties": {"QueueName": {"Fn::Sub": "${Stack}-" + queue}}},
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {"Policies": [{"PolicyDocument": {"Statement": list(statements)}}]},
            },
        },
        "Outputs": {"Url": {"Value": {"Ref": "Orders"}}},
    }


def root(kind: str, **properties: object) -> Any:  # noqa: ANN401  # a template
    given = {"Parameters": {"Stack": {"Ref": "AWS::StackName"}}, **properties}
    return {
        "Parameters": {
            "LogLevel": {"Type": "String", "Default": "INFO"},
            "Url": {"Type": "String"},
        },
        "Resources": {"Engine": {"Type": kind, "Properties": given}},
    }


GET_OBJECTS = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
NO_CHANGES = (
    "The submitted information didn't contain changes. Submit different information to create a "
    "change set."
)


@dataclass
class Cloud:
    """A fake AWS with one stack, its nested stack, S3, and at most one change set."""

    exists: bool = True
    live: Any = field(default_factory=engine)
    objects: dict[str, str] = field(default_factory=dict)
    settings: str = ""
    """Those of the stack's engine."""
    refuses_nested: str = ""
    refuses: str = ""
    made: dict[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    availability: str = "AVAILABLE"
    deployed: str = "UPDATE_COMPLETE"
    events: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)

    def remember(self, params: dict[str, Any], **_: object) -> None:
        self.asked = dict(params)

    def answer(self, model: Any, **_: object) -> Any:  # noqa: ANN401  # what botocore makes of it
        self.called.append((model.name, self.asked))
        found = getattr(self, f"on_{model.name}")(**self.asked)
        status = 400 if "Error" in found else 200
        return SimpleNamespace(status_code=status), {
            "ResponseMetadata": {"HTTPStatusCode": status},
            **found,
        }

    def calls(self, name: str) -> list[dict[str, Any]]:
        return [asked for called, asked in self.called if called == name]

    def on_DescribeStacks(self, StackName: str) -> Any:  # noqa: ANN401
        if not self.exists and not self.calls("ExecuteChangeSet"):
            return {"Error": {"Code": "ValidationError", "Message": f"no {StackName}"}}
        one = {
            "StackName": "shop",
            "StackId": STACK,
            "StackStatus": self.deployed,
            "Parameters": [
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in (("LogLevel", "DEBUG"), ("Url", "https://u"), ("Gone", "x"))
            ],
        }
        if self.settings:
            one["Outputs"] = [{"OutputKey": "EngineSettings", "OutputValue": self.settings}]
        return {"Stacks": [one]}

    def on_GetTemplate(self, **asked: str) -> Any:  # noqa: ANN401
        if "ChangeSetName" in asked:
            return {"TemplateBody": self.objects[self.made["TemplateURL"]]}
        body = self.live if asked["StackName"] == ENGINE else root("AWS::CloudFormation::Stack")
        return {"TemplateBody": json.dumps(body)}

    def on_ListStackResources(self, StackName: str) -> Any:  # noqa: ANN401
        one = {
            "LogicalResourceId": "Engine",
            "PhysicalResourceId": ENGINE,
            "ResourceType": "AWS::CloudFormation::Stack",
            "ResourceStatus": "UPDATE_COMPLETE",
        }
        return {"StackResourceSummaries": [one] if StackName == STACK else []}

    def on_PutObject(self, Bucket: str, Key: str, Body: bytes) -> Any:  # noqa: ANN401
        self.objects[f"{HOST}/{Bucket}/{Key}"] = Body.decode()
        return {}

    def on_GetObject(self, Bucket: str, Key: str) -> Any:  # noqa: ANN401
        return {"Body": io.BytesIO(self.objects[f"{HOST}/{Bucket}/{Key}"].encode())}

    def on_CreateChangeSet(self, **asked: Any) -> Any:  # noqa: ANN401
        self.made = asked
        return {"Id": MADE, "StackId": STACK}

    def on_DescribeChangeSet(self, ChangeSetName: str, **_: object) -> Any:  # noqa: ANN401
        if not self.made:
            return {"Error": {"Code": "ChangeSetNotFound", "Message": "none"}}
        nested = bool(self.made["IncludeNestedStacks"])
        reason = self.refuses or (self.refuses_nested if nested else "")
        if ChangeSetName == INNER:
            reason = "Template error: Fn::Select cannot select nonexistent value at index 7"
        answer: dict[str, object] = {
            "ChangeSetId": MADE,
            "StackName": "shop",
            "Status": "FAILED" if reason else "CREATE_COMPLETE",
            "ExecutionStatus": "UNAVAILABLE" if reason else self.availability,
            "StatusReason": reason,
            "IncludeNestedStacks": nested,
            "Parameters": [one for one in self.made["Parameters"] if "ParameterValue" in one],
            "Changes": [{"ResourceChange": one} for one in self.changes.get(ChangeSetName, ())],
        }
        return answer

    def on_DeleteChangeSet(self, **_: object) -> Any:  # noqa: ANN401
        self.made = {}
        return {}

    def on_ExecuteChangeSet(self, **_: object) -> Any:  # noqa: ANN401
        return {}

    def on_DescribeStackEvents(self, StackName: str) -> Any:  # noqa: ANN401
        return {"StackEvents": self.events.get(StackName, ())}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "template.yaml").write_text(json.dumps(root("AWS::Serverless::Application")))
    (folder / "samconfig.toml").write_text(
        '[default.global.parameters]\nstack_name = "shop"\n'
        '[default.deploy.parameters]\nresolve_s3 = true\ntags = "team=orders"\n'
    )
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "x")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    found = Cloud()
    session.events.register("provide-client-params", found.remember)
    session.events.register("before-call", found.answer)
    return found


def builds(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, template: object) -> None:
    """Let the build of the project have this template of the engine."""
    Path(".aws-sam/build").mkdir(parents=True, exist_ok=True)
    Path(".aws-sam/build/template.yaml").write_text("{}")
    cloud.objects[BUSY] = json.dumps(template)
    found = root("AWS::Serverless::Application", Location=BUSY)
    found["Transform"] = "AWS::Serverless-2016-10-31"
    monkeypatch.setattr(packaging, "_sam_package", lambda *_: found)


def types(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["changes", *arguments])


def prints(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = types(*arguments, "--json")
    assert result.stdout, result.stderr
    found = json.loads(result.stdout)
    assert_schema("changes", found)
    return result.exit_code, found


pytestmark = pytest.mark.usefixtures("project")


def test_a_change_set_of_all_nested_stacks_is_made_of_templates_without_macros(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    code, found = prints("--param", "Url=https://new")
    assert (code, found["changeSet"], found["nested"]) == (0, MADE, True)
    [asked] = cloud.calls("CreateChangeSet")
    assert asked["ChangeSetType"] == "UPDATE"
    assert asked["IncludeNestedStacks"] is True
    assert asked["Tags"] == [{"Key": "team", "Value": "orders"}]
    # As sam deploy: what is not given stays as it is.
    assert asked["Parameters"] == [
        {"ParameterKey": "LogLevel", "UsePreviousValue": True},
        {"ParameterKey": "Url", "ParameterValue": "https://new"},
    ]
    sent = json.loads(cloud.objects[asked["TemplateURL"]])
    block = sent["Resources"]["Engine"]
    assert "Transform" not in sent
    assert block["Type"] == "AWS::CloudFormation::Stack"
    assert "Role" in json.loads(cloud.objects[block["Properties"]["TemplateURL"]])["Resources"]
    assert [(one["holder"], one["action"]) for one in found["rights"]] == [("Role", "s3:GetObject")]
    assert [(one["name"], one["action"]) for one in found["changes"]] == [("Role", "changed")]
    assert cloud.calls("ExecuteChangeSet") == []


def test_a_new_stack_gets_a_change_set_of_its_creation(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.exists = False
    builds(cloud, monkeypatch, engine())
    code, found = prints("--param", "Url=https://new")
    [asked] = cloud.calls("CreateChangeSet")
    assert (code, asked["ChangeSetType"]) == (0, "CREATE")
    assert asked["Parameters"] == [{"ParameterKey": "Url", "ParameterValue": "https://new"}]
    assert {one["action"] for one in found["changes"]} == {"added"}


def test_more_than_one_index_at_once_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    review = Review(
        stack="shop",
        changes=[ResourceChange("OrdersTable", "AWS::DynamoDB::Table", Action.CHANGE)],
        passed_on=(),
        rights=(),
        stopped=(),
        many_indexes=("OrdersTable",),
    )
    print_review(review, Console(width=200))
    said = capsys.readouterr().out
    assert "Warning: More than one index of OrdersTable is made or removed" in said
    assert "change SearchFields by 1 in each deployment" in said


def test_an_agent_that_polls_is_deployed_after_an_engine_that_knows_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    agent = Path("functions/agents/stock")
    agent.mkdir(parents=True)
    (agent / "app.py").write_text("def perform(request):\n    return NotYet(again_in=1)\n")
    code, found = prints("--param", "Url=https://new")
    assert code == 0, "it stops nothing"
    assert found["engineFirst"] == [
        "functions/agents/stock/app.py returns NotYet, which the deployed scheduler may not know: "
        "deploy the engine first, with the former code of this agent, and then this code."
    ]
    said = types("--param", "Url=https://new").stdout
    assert "Warning: functions/agents/stock/app.py returns NotYet" in said
    cloud.settings = "DueShards=16,Replies=1"
    assert prints("--param", "Url=https://new")[1]["engineFirst"] == []


def test_a_deployment_that_fails_takes_its_versions_with_it_so_that_it_can_be_repeated(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = {
        "Type": "AWS::Serverless::Function",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "CodeUri": "s3://bucket/code.zip",
            "Handler": "app.handler",
            "Runtime": "python3.13",
            "Role": "arn:aws:iam::123456789012:role/x",
            "AutoPublishAlias": "live",
        },
    }
    layer = {
        "Type": "AWS::Serverless::LayerVersion",
        "Properties": {"ContentUri": "s3://bucket/layer.zip", "RetentionPolicy": "Retain"},
    }
    template = engine()
    template["Resources"] |= {"Pay": function, "Core": layer}
    template["Transform"] = "AWS::Serverless-2016-10-31"
    builds(cloud, monkeypatch, template)
    assert prints("--param", "Url=https://new")[0] == 0
    [asked] = cloud.calls("CreateChangeSet")
    block = json.loads(cloud.objects[asked["TemplateURL"]])["Resources"]["Engine"]
    sent = json.loads(cloud.objects[block["Properties"]["TemplateURL"]])["Resources"]
    policies = {one["Type"]: one.get("DeletionPolicy") for one in sent.values()}
    assert policies["AWS::Lambda::Version"] == "RetainExceptOnCreate"
    assert policies["AWS::Lambda::LayerVersion"] == "Retain", "a layer can always be published"
    assert policies["AWS::Lambda::Function"] is None, "it is deleted with its stack"


def test_what_aws_says_of_nested_stacks_is_joined_with_the_comparison(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dynamic(name: str) -> dict[str, object]:
        target = {"Attribute": "Properties", "Name": "Topic", "RequiresRecreation": "Never"}
        detail = {
            "Target": target,
            "Evaluation": "Dynamic",
            "ChangeSource": "ParameterReference",
            "CausingEntity": "Engine",
        }
        return {
            "Action": "Modify",
            "LogicalResourceId": name,
            "ResourceType": "AWS::SNS::Subscription",
            "Replacement": "False",
            "Details": [detail],
        }

    nested = {
        "Action": "Modify",
        "LogicalResourceId": "Engine",
        "ResourceType": "AWS::CloudFormation::Stack",
        "Replacement": "False",
        "ChangeSetId": INNER,
        "Details": [],
    }
    replaced = {
        "Action": "Modify",
        "LogicalResourceId": "Orders",
        "ResourceType": "AWS::SQS::Queue",
        "Replacement": "Conditional",
        "Details": [{"Target": {"Attribute": "Properties", "Name": "QueueName"}}],
    }
    versions = [
        {"Action": "Add", "LogicalResourceId": "FVersion0123456789"},
        {"Action": "Remove", "LogicalResourceId": "FVersionabcdef0123", "PolicyAction": "Retain"},
    ]
    without_a_change_set = {**nested, "LogicalResourceId": "Mail", "Replacement": "Conditional"}
    del without_a_change_set["ChangeSetId"]
    cloud.changes = {
        MADE: [nested, without_a_change_set],
        INNER: [
            replaced,
            dynamic("Mails"),
            *({**one, "ResourceType": "AWS::Lambda::Version"} for one in versions),
        ],
    }
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    code, found = prints()
    assert code == FAILED
    assert [(one["name"], one["action"]) for one in found["changes"]] == [
        ("FVersion", "new version"),
        ("Orders", "may be replaced"),
        ("Role", "changed"),
    ]
    assert [one["name"] for one in found["passedOn"]] == ["Mails"]
    assert found["stopped"] == ["Orders"]
    code, found = prints("--allow", "Orders")
    assert (code, found["stopped"]) == (0, [])


def test_where_aws_refuses_the_nested_stacks_their_templates_are_compared(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.refuses_nested = "Nested change set was not successfully created: Currently in FAILED."
    cloud.changes = {
        MADE: [
            {
                "LogicalResourceId": "Engine",
                "ResourceType": "AWS::CloudFormation::Stack",
                "Action": "Modify",
                "ChangeSetId": INNER,
            }
        ]
    }
    builds(cloud, monkeypatch, engine("other"))
    code, found = prints()
    assert code == FAILED
    assert found["stopped"] == ["Orders"]
    assert (found["nested"], found["changeSet"]) == (False, MADE)
    assert "Engine: Template error: Fn::Select" in found["refused"]
    assert [one["IncludeNestedStacks"] for one in cloud.calls("CreateChangeSet")] == [True, False]
    assert len(cloud.calls("DeleteChangeSet")) == 1
    result = types()
    assert result.exit_code == FAILED
    assert "did not look into the nested stacks" in result.stdout
    assert "--allow Orders" in result.stderr


def test_nothing_to_change_is_no_failure(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.refuses = NO_CHANGES
    builds(cloud, monkeypatch, engine())
    code, found = prints()
    assert (code, found["changeSet"], found["changes"]) == (0, None, [])
    assert len(cloud.calls("CreateChangeSet")) == 1
    assert "Nothing changes in shop." in types().stdout


def test_a_change_set_that_aws_refuses_is_reported_with_its_reason(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.refuses = "Requires capabilities : [CAPABILITY_NAMED_IAM]"
    builds(cloud, monkeypatch, engine())
    result = types()
    assert result.exit_code == FAILED
    assert "AWS makes no change set of shop: Requires capabilities" in result.stderr
    assert len(cloud.calls("DeleteChangeSet")) == 2


def test_the_arn_goes_to_the_file_of_the_pipeline(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    assert types("--github-output", "out").exit_code == 0
    assert Path("out").read_text() == f"change_set={MADE}\n"


def test_the_command_that_carries_it_out_is_printed_and_works(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    shown = types().stdout
    assert f"Carry it out: roundsman changes --execute {MADE}" in shown
    code, found = prints("--execute", MADE)
    assert (code, found["executed"]) == (0, True)
    assert [one["name"] for one in found["changes"]] == ["Role"]
    assert cloud.calls("ExecuteChangeSet") == [{"ChangeSetName": MADE}]


def test_a_change_set_that_loses_messages_is_not_carried_out_until_it_is_allowed(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, engine("other"))
    assert types().exit_code == FAILED
    code, found = prints("--execute", MADE)
    assert (code, found["executed"], found["stopped"]) == (FAILED, False, ["Orders"])
    assert cloud.calls("ExecuteChangeSet") == []
    code, found = prints("--execute", MADE, "--allow", "Orders")
    assert (code, found["executed"]) == (0, True)


def test_a_deployment_that_fails_is_reported_with_the_first_event_of_the_nested_stack(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def event(stack: str, name: str, physical: str, status: str, reason: str) -> dict[str, object]:
        nested = physical != stack and physical == ENGINE
        return {
            "StackId": stack,
            "LogicalResourceId": name,
            "PhysicalResourceId": physical,
            "ResourceType": "AWS::CloudFormation::Stack" if nested else "AWS::SQS::Queue",
            "ResourceStatus": status,
            "ResourceStatusReason": reason,
        }

    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    types()
    cloud.deployed = "UPDATE_ROLLBACK_COMPLETE"
    cloud.events = {
        "shop": [
            event(STACK, "shop", STACK, "UPDATE_ROLLBACK_COMPLETE", ""),
            event(STACK, "Engine", ENGINE, "UPDATE_FAILED", "Embedded stack was not updated"),
            event(STACK, "shop", STACK, "UPDATE_IN_PROGRESS", ""),
            event(STACK, "Old", "q", "UPDATE_FAILED", "of an earlier deployment"),
        ],
        ENGINE: [
            event(ENGINE, "Later", "q", "UPDATE_FAILED", "Resource update cancelled"),
            event(ENGINE, "Role", "r", "UPDATE_FAILED", "not authorized"),
            event(ENGINE, "e", ENGINE, "UPDATE_IN_PROGRESS", ""),
        ],
    }
    result = types("--execute", MADE)
    assert result.exit_code == FAILED
    assert "shop was not deployed: Engine: Role: not authorized" in result.stderr


@pytest.mark.parametrize(
    ("availability", "words"),
    [("OBSOLETE", "changed since this change set"), ("EXECUTE_COMPLETE", "EXECUTE_COMPLETE")],
)
def test_a_change_set_of_the_past_is_not_carried_out(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, availability: str, words: str
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    types()
    cloud.availability = availability
    result = types("--execute", MADE)
    assert result.exit_code == FAILED
    assert words in result.stderr
    assert cloud.calls("ExecuteChangeSet") == []


def test_a_change_set_that_does_not_exist_is_not_found(cloud: Cloud) -> None:
    result = types("--execute", "nothing")
    assert result.exit_code == NOT_FOUND
    assert "The stack shop has no change set nothing." in result.stderr
    assert cloud.calls("ExecuteChangeSet") == []


def test_a_change_set_of_another_stack_is_not_carried_out(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    builds(cloud, monkeypatch, engine("orders", GET_OBJECTS))
    types()
    config = (project / "samconfig.toml").read_text()
    (project / "samconfig.toml").write_text(config.replace('"shop"', '"shop-prod"'))
    result = types("--execute", MADE)
    assert result.exit_code == FAILED
    assert "of the stack shop, not shop-prod" in result.stderr


def test_a_project_that_is_not_built_says_so(cloud: Cloud) -> None:
    result = types()
    assert result.exit_code == FAILED
    assert "run `sam build` first" in result.stderr
    assert cloud.calls("CreateChangeSet") == []


def test_a_setting_that_would_be_dropped_is_refused(cloud: Cloud, project: Path) -> None:
    config = (project / "samconfig.toml").read_text()
    (project / "samconfig.toml").write_text(config + 'notification_arns = ["arn:x"]\n')
    result = types()
    assert "notification_arns" in result.stderr
    assert cloud.called == []


def test_a_template_with_another_macro_is_not_compared(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds(cloud, monkeypatch, {**engine(), "Transform": ["AWS::LanguageExtensions"]})
    result = types()
    assert result.exit_code == FAILED
    assert "AWS::LanguageExtensions" in result.stderr


def test_sam_packages_into_the_bucket_of_samconfig(project: Path, cloud: Cloud) -> None:
    Path(".aws-sam/build").mkdir(parents=True)
    Path(".aws-sam/build/template.yaml").write_text("{}")
    ran: list[list[str]] = []

    def run(command: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        assert environment["SAM_CLI_TELEMETRY"] == "0"
        ran.append(list(command))
        log.write_text("Error: no credentials")
        return 1

    for settings in ({"s3_bucket": "b", "s3_prefix": "p"}, {"resolve_s3": True}):
        with pytest.raises(InspectorError, match="sam package failed: Error: no credentials"):
            package(project, boto3.client("s3"), settings, {}, region="x", runner=run)
    assert ran[0][-4:] == ["--s3-bucket", "b", "--s3-prefix", "p"]
    assert ran[1][-1] == "--resolve-s3"
    assert cloud.called == []

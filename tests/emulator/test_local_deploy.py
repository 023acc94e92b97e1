"""Updating a running stack for real: `sam build`, `sam deploy` and Lambda of the emulator."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_console.aws.local_record import Instances, LocalFiles
from roundsman_console.base.errors import ConsoleError
from roundsman_dev.local import LocalAws
from roundsman_dev.local.deploy import emulator_session
from roundsman_dev.local.environment import RUNTIME
from roundsman_dev.local.parameters import architecture
from roundsman_dev.local.update import CodePutter, deploy
from tests.emulator.conftest import PROJECT

pytestmark = pytest.mark.stack

ROOT = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Words:
    Type: AWS::Serverless::LayerVersion
    Metadata: {BuildMethod: makefile}
    Properties: {ContentUri: layers/words, RetentionPolicy: Retain}
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: Id, AttributeType: S}]
      KeySchema: [{AttributeName: Id, KeyType: HASH}]
  Child:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/child.yaml
      Parameters: {Words: !Ref Words, Code: ../functions/speak}
Outputs:
  TableName: {Value: !Ref Table}
"""
CHILD = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Words: {Type: String}
  Code: {Type: String}
Resources:
  Key:
    Type: AWS::KMS::Key
    Properties: {KeyPolicy: {Version: '2012-10-17', Statement: []}}
  Function:
    Type: AWS::Serverless::Function
    UpdateReplacePolicy: Retain
    Properties:
      AutoPublishAlias: live
      AutoPublishAliasAllProperties: true
      Description: !Select [7, !Split [':', !Ref Words]]
      VersionDescription: !Select [7, !Split [':', !Ref Words]]
      CodeUri: !Ref Code
      Handler: app.handler
      Runtime: RUNTIME
      Architectures: [ARCHITECTURE]
      Layers: [!Ref Words]
      Environment: {Variables: {KEY: !GetAtt Key.Arn}}
"""
WRONG = """
  TooLong:
    Type: AWS::SQS::Queue
    DependsOn: Child
    Properties: {VisibilityTimeout: 9999999}
"""
MAKEFILE = (
    'build-Words:\n\tmkdir -p "$(ARTIFACTS_DIR)/python"\n\tcp -R words "$(ARTIFACTS_DIR)/python"\n'
)
SPEAK = "from words import word\n\ndef handler(event, context):\n    return f'{word} {WORD!r}'\n"
APP = Path("functions/speak/app.py")
WORDS = Path("layers/words/words/__init__.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    child = CHILD.replace("RUNTIME", RUNTIME).replace("ARCHITECTURE", architecture())
    for path, text in {
        Path("template.yaml"): ROOT,
        Path("stacks/child.yaml"): child,
        APP: SPEAK.replace("{WORD!r}", "one"),
        WORDS: "word = 'first'\n",
        Path("layers/words/Makefile"): MAKEFILE,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".cache").symlink_to(PROJECT / ".cache")  # so that no other emulator is installed
    return tmp_path


@pytest.fixture
def running(project: Path) -> Iterator[LocalAws]:
    with LocalAws.up(port=0, project=project) as local:
        yield local


def instance_of(project: Path, local: LocalAws) -> LocalFiles:
    return Instances(project).at(local.record.port)


def result_of(local: LocalAws) -> str:
    client = emulator_session(local.record).client("lambda", endpoint_url=local.endpoint)
    [function] = client.list_functions()["Functions"]
    answer = client.invoke(FunctionName=function["FunctionName"], Qualifier="live")
    result: str = json.loads(answer["Payload"].read())
    return result


def change(project: Path, file: Path, old: str, new: str) -> None:
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))


def test_a_stack_is_updated_in_place(project: Path, running: LocalAws) -> None:
    instance = instance_of(project, running)
    database = emulator_session(running.record).client("dynamodb", endpoint_url=running.endpoint)
    table = running.outputs["TableName"]
    database.put_item(TableName=table, Item={"Id": {"S": "kept"}})
    assert result_of(running) == "first one"

    # code alone, without a deployment
    putter = CodePutter(project, instance)
    change(project, APP, "one", "two")
    change(project, WORDS, "first", "second")
    assert putter.put([APP, WORDS]) == ("ChildFunction",)
    assert result_of(running) == "second two"

    # a template that is not valid, and code as it was at the beginning
    change(project, APP, "two", "one")
    change(project, WORDS, "second", "first")
    (project / "template.yaml").write_text(ROOT.replace("Outputs:", f"{WRONG}Outputs:"))
    with pytest.raises(ConsoleError, match=r"TooLong: .*runs as before\.$"):
        deploy(project, instance)
    assert result_of(running) == "first one"  # the newest code; what was put in by hand is not lost

    # and a valid one, with another resource
    more = "  More: {Type: AWS::SNS::Topic}\nOutputs:\n  Topic: {Value: !Ref More}"
    (project / "template.yaml").write_text(ROOT.replace("Outputs:", more))
    change(project, WORDS, "first", "third")
    done = deploy(project, instance)
    assert "Topic" in done.outputs
    assert done.changed == []
    assert result_of(running) == "third one"

    # a nested stack that is gone from the template goes from the emulator
    change(project, Path("template.yaml"), "  Child:\n", "  Other:\n")
    deploy(project, instance)
    assert result_of(running) == "third one"  # of the only function
    assert "Item" in database.get_item(TableName=table, Key={"Id": {"S": "kept"}})

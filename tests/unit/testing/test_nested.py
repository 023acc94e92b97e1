"""Nested stacks in one template: what becomes of names, parameters and outputs."""

from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_dev.nested_stacks import Document, NestedProblem, flattened

ROOT = """
Parameters:
  Level: {Type: String, Default: INFO}
Resources:
  Layer: {Type: 'AWS::Serverless::LayerVersion', Properties: {ContentUri: layers/core}}
  Engine:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/engine.yaml
      Parameters: {Stack: !Ref AWS::StackName, Layer: !Ref Layer, Level: !Ref Level}
  Mail:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {Engine: !GetAtt Engine.Outputs.ForAgents, Agent: mail, Code: ../functions/mail}
Outputs:
  QueueUrl: {Value: !GetAtt Engine.Outputs.QueueUrl}
  MailAgent: {Value: !GetAtt Mail.Outputs.Summary}
"""
ENGINE = """
Parameters:
  Stack: {Type: String}
  Layer: {Type: String}
  Level: {Type: String}
  Size: {Type: Number, Default: 10}
  Email: {Type: String, Default: ''}
Mappings:
  Sizes: {'10': {Most: 10}, '20': {Most: 20}}
Conditions:
  HasEmail: !Not [!Equals [!Ref Email, '']]
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Condition: HasEmail
    Properties:
      QueueName: !Sub ${Stack}-Queue
      Size: !FindInMap [Sizes, !Ref Size, Most]
      Level: !If [HasEmail, !Ref Level, none]
      Literal: !Sub ${!Stack} of ${AWS::Region}
  Table: {Type: 'AWS::DynamoDB::Table', DependsOn: Queue}
Outputs:
  QueueUrl: {Value: !Ref Queue}
  ForAgents: {Value: !Join [',', [!Ref Layer, !GetAtt Table.Arn, !Ref Size]]}
"""
AGENT = """
Parameters:
  Engine: {Type: String}
  Agent: {Type: String}
  Code: {Type: String}
  Seconds: {Type: Number, Default: 40}
Globals:
  Function:
    Layers: [!Select [0, !Split [',', !Ref Engine]]]
    Environment: {Variables: {TABLE: !Select [1, !Split [',', !Ref Engine]], NAME: global}}
Resources:
  Function:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: !Ref Code
      Timeout: !Ref Seconds
      Layers: [own]
      Environment: {Variables: {NAME: !Ref Agent, ROLE: !GetAtt Role.Arn}}
  Role:
    Type: AWS::IAM::Role
    Properties:
      Path: !Sub
        - ${Table}/index of ${Agent} in ${Role.Arn}
        - {Table: !Select [1, !Split [',', !Ref Engine]]}
Outputs:
  Summary: {Value: !Join [',', [!Ref Agent, !Ref Function]]}
"""


def parse(text: str) -> Document:
    found = yaml_parse(text)
    assert isinstance(found, dict)
    return found


def whole(settings: dict[str, str] | None = None, root: str = ROOT) -> Document:
    texts = {"engine.yaml": ENGINE, "agent.yaml": AGENT}
    return flattened(parse(root), Path(), lambda path: parse(texts[path.name]), settings)


def resource(document: Document, name: str) -> Document:
    resources = document["Resources"]
    assert isinstance(resources, dict)
    found = resources[name]
    assert isinstance(found, dict)
    return found


def test_the_engine_keeps_its_names_and_an_agent_gets_that_of_its_block() -> None:
    resources = whole()["Resources"]
    assert isinstance(resources, dict)
    assert set(resources) == {"Layer", "Queue", "Table", "MailFunction", "MailRole"}


def test_parameters_become_the_values_of_the_block_or_their_defaults() -> None:
    properties = resource(whole(), "Queue")["Properties"]
    assert properties == {
        "QueueName": {"Fn::Sub": "${AWS::StackName}-Queue"},
        "Size": 10,
        "Level": {"Fn::If": ["HasEmail", {"Ref": "Level"}, "none"]},
        "Literal": {"Fn::Sub": "${!Stack} of ${AWS::Region}"},
    }
    assert resource(whole(), "Queue")["Condition"] == "HasEmail"
    assert resource(whole(), "Table")["DependsOn"] == "Queue"
    assert whole()["Conditions"] == {
        "HasEmail": {"Fn::Not": [{"Fn::Equals": ["", ""]}]},
    }


def test_a_function_has_what_its_globals_and_the_engine_give_it() -> None:
    properties = resource(whole(), "MailFunction")["Properties"]
    assert properties == {
        "CodeUri": "functions/mail",
        "Timeout": 40,
        "Layers": [{"Ref": "Layer"}, "own"],
        "Environment": {
            "Variables": {
                "TABLE": {"Fn::GetAtt": ["Table", "Arn"]},
                "NAME": "mail",
                "ROLE": {"Fn::GetAtt": ["MailRole", "Arn"]},
            }
        },
    }
    assert resource(whole(), "MailRole")["Properties"] == {
        "Path": {
            "Fn::Sub": [
                "${Table}/index of mail in ${MailRole.Arn}",
                {"Table": {"Fn::GetAtt": ["Table", "Arn"]}},
            ]
        }
    }


def test_outputs_of_blocks_become_what_they_are_in_the_whole() -> None:
    assert whole()["Outputs"] == {
        "QueueUrl": {"Value": {"Ref": "Queue"}},
        "MailAgent": {"Value": {"Fn::Join": [",", ["mail", {"Ref": "MailFunction"}]]}},
    }


def test_settings_replace_the_values_of_blocks() -> None:
    changed = whole({"Engine.Size": "20", "Mail.Seconds": "5"})
    assert resource(changed, "MailFunction")["Properties"]["Timeout"] == 5  # type: ignore[index, call-overload]
    assert resource(changed, "Queue")["Properties"]["Size"] == 20  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"Engine.Nothing": "1"}, r"Engine: stacks/engine\.yaml has no parameter Nothing"),
        ({"Letters.Seconds": "1"}, r"no block for the setting Letters\.Seconds"),
    ],
)
def test_a_setting_of_nothing_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(NestedProblem, match=message):
        whole(settings)


def test_a_block_that_gives_too_little_is_refused() -> None:
    with pytest.raises(NestedProblem, match=r"Mail: stacks/agent\.yaml asks for Agent"):
        whole(root=ROOT.replace("Agent: mail, ", ""))


def test_blocks_that_need_each_other_are_refused() -> None:
    circle = ROOT.replace("Level: !Ref Level}", "Level: !GetAtt Mail.Outputs.Summary}")
    with pytest.raises(NestedProblem, match="these blocks need each other's outputs: Engine, Mail"):
        whole(root=circle)


def test_two_resources_with_one_name_are_refused() -> None:
    with pytest.raises(NestedProblem, match="two resources are named MailRole"):
        whole(root=ROOT.replace("  Layer: {", "  MailRole: {Type: Role}\n  Layer: {"))

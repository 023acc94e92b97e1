"""docs/how-to/take-events.md: its programs run as printed, and its resources are those it names."""

import re
from pathlib import Path

import pytest

from roundsman_dev.template import Document, mapping_of
from tests.template.conftest import nested_template

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "take-events.md"
TEXT = PAGE.read_text(encoding="utf-8")


def programs() -> dict[str, object]:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(block, names)  # noqa: S102  # our own page
    return names


TESTS = [name for name in programs() if name.startswith("test_")]


@pytest.mark.parametrize("name", TESTS)
def test_a_test_on_the_page_passes(name: str) -> None:
    test = programs()[name]
    assert callable(test)
    test()


def test_the_queue_on_the_page_is_the_one_of_the_stack() -> None:
    resources = mapping_of(nested_template("engine.yaml")["Resources"])
    queue: Document = mapping_of(mapping_of(resources["SubmissionQueue"])["Properties"])
    assert queue["QueueName"] == {"Fn::Sub": "${Stack}-SubmissionQueue"}
    assert TEXT.count(":${AWS::StackName}-SubmissionQueue") == 3


def test_each_service_that_has_a_dead_letter_queue_has_it_in_its_block() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    topic, rule, bucket = blocks[1:]
    assert "RedrivePolicy: {deadLetterTargetArn: !GetAtt Undelivered.Arn}" in topic
    assert "DeadLetterConfig: {Arn: !GetAtt Undelivered.Arn}" in rule
    assert "RoleArn" not in rule
    assert "DependsOn: Engine" in bucket

"""docs/how-to/deploy.md counts what the template creates."""

import re

from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_dev.check.reading import of_type
from roundsman_dev.nested_stacks import APPLICATION
from roundsman_dev.template import Document, mapping_of
from tests.project import TEMPLATE
from tests.support.template_reading import alarms, dead_letter_queues, work_queues

PAGE = TEMPLATE.parent / "docs" / "how-to" / "deploy.md"


def rows(columns: int) -> list[list[str]]:
    """The table rows of the page that have this many columns."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in split if len(row) == columns]


def written_template() -> Document:
    """template.yaml as written, with a block for each nested stack."""
    return mapping_of(yaml_parse(TEMPLATE.read_text(encoding="utf-8")))


def test_the_page_counts_what_the_template_makes(document: Document) -> None:
    counts = {row[0]: int(row[1]) for row in rows(2) if row[1].isdecimal()}
    expected = {
        "nested": len(of_type(written_template(), APPLICATION)),
        "functions": len(of_type(document, "AWS::Lambda::Function")),
        "layers": len(of_type(document, "AWS::Lambda::LayerVersion")),
        "tables": len(of_type(document, "AWS::DynamoDB::Table")),
        "queues": len(work_queues(document)),
        "their": len(dead_letter_queues(document)),
        "RejectedQueue": 1,
        "event": len(of_type(document, "AWS::Lambda::EventSourceMapping")),
        "alarms": len(alarms(document)),
        "dashboard": len(of_type(document, "AWS::CloudWatch::Dashboard")),
        "alert": len(of_type(document, "AWS::SNS::Topic")),
        "the": len(of_type(document, "AWS::KMS::Key")),
        "schedules": len(of_type(document, "AWS::Scheduler::Schedule")),
    }
    assert {re.split(r"\W", name)[0]: count for name, count in counts.items()} == expected

"""docs/how-to/deploy.md counts what the template creates."""

import re

from roundsman.testing.rules.reading import dead_letter_queues, of_type, work_queues
from roundsman.testing.stack.template import Document
from tests.project import TEMPLATE

PAGE = TEMPLATE.parent / "docs" / "how-to" / "deploy.md"


def rows(columns: int) -> list[list[str]]:
    """The table rows of the page that have this many columns."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in split if len(row) == columns]


def test_the_page_counts_what_the_template_makes(document: Document) -> None:
    counts = {row[0]: int(row[1]) for row in rows(2) if row[1].isdecimal()}
    expected = {
        "functions": len(of_type(document, "AWS::Lambda::Function")),
        "layers": len(of_type(document, "AWS::Lambda::LayerVersion")),
        "tables": len(of_type(document, "AWS::DynamoDB::Table")),
        "queues": len(work_queues(document)),
        "their": len(dead_letter_queues(document)),
        "RejectedQueue": 1,
        "event": len(of_type(document, "AWS::Lambda::EventSourceMapping")),
        "alarms": len(of_type(document, "AWS::CloudWatch::Alarm")),
        "alert": len(of_type(document, "AWS::SNS::Topic")),
        "the": len(of_type(document, "AWS::KMS::Key")),
        "schedules": len(of_type(document, "AWS::Scheduler::Schedule")),
    }
    assert {re.split(r"\W", name)[0]: count for name, count in counts.items()} == expected

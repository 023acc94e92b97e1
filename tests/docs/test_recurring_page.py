"""The page of recurring orders: its test passes, and its block is one that `check` takes."""

import json
import re
from itertools import islice
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.definition.recurrence import Recurrence
from roundsman_dev.check.schedules import RUN, schedule_problems
from roundsman_dev.template import Document, Json
from tests.world.shop import a_step, a_workflow

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "recurring-orders.md"
PAPER = a_workflow(a_step("buy"))


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_test_of_the_page_passes() -> None:
    names: dict[str, object] = {"paper": PAPER}
    exec(compile(block("python"), str(PAGE), "exec"), names)  # noqa: S102  # the page's own
    test = names["test_the_paper_is_ordered_each_week"]
    assert callable(test)
    test()


def test_the_block_of_the_page_is_a_schedule_whose_order_is_accepted() -> None:
    [(_, resource)] = yaml_parse(block("yaml")).items()
    given = resource["Properties"]["Parameters"]
    order = json.loads(given["Order"])
    assert order["processing"] == {"workflow": "paper", "run": RUN, "overlap": "skip"}
    order["processing"]["workflow"] = PAPER.name
    schedule: Json = {
        "ScheduleExpression": given["Schedule"],
        "ScheduleExpressionTimezone": given["TimeZone"],
        "Target": {"Arn": {"Fn::GetAtt": ["SubmissionQueue", "Arn"]}, "Input": json.dumps(order)},
    }
    document: Document = {
        "Resources": {"S": {"Type": "AWS::Scheduler::Schedule", "Properties": schedule}}
    }
    assert schedule_problems(document, [PAPER]) == []
    assert [*islice(Recurrence(given["Schedule"], given["TimeZone"]).runs(0), 1)]

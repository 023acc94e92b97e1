"""docs/how-to/large-data.md: its programs run as they are printed."""

import re
from pathlib import Path

from roundsman.model.record_limits import LARGEST_PAYLOAD
from tests.template.conftest import nested_template

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "large-data.md"
TEXT = PAGE.read_text(encoding="utf-8")
WORKFLOW, CLIENT, AGENT, TEST = re.findall(r"```python\n(.*?)```", TEXT, re.S)


def test_the_workflow_and_its_agent_pass_the_test_of_the_page() -> None:
    names: dict[str, object] = {}
    for program in (WORKFLOW, AGENT, TEST):
        exec(program, names)  # noqa: S102  # our own page
    compile(CLIENT, str(PAGE), "exec")


def test_its_numbers_are_those_of_the_code_and_the_template() -> None:
    assert f"{LARGEST_PAYLOAD // 1_000_000} MB" in TEXT
    days = nested_template("engine.yaml")["Parameters"]
    assert f"{days['PayloadDays']['Default']} days by default" in TEXT  # type: ignore[index,call-overload]  # a document

"""docs/operations.md has an entry for each alarm and each kind of alert, and for nothing else.

Each entry says what it means, what to run, what is then to be seen, and when it is over; and what
it says to run is a command that there is.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from roundsman.alerts.group_alert import KINDS
from roundsman.testing.stack.template import Document
from tests.console.verbs import VERBS, options_of
from tests.project import TEMPLATE
from tests.template.reading import of_type

ROOT = TEMPLATE.parent
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
PARTS = ["Means", "Run", "See", "Over"]


def entries(section: str) -> dict[str, str]:
    """The section's entries: what they are about, `A`, `B`, as in their heading, and their text."""
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", text, re.M | re.S))


def names(section: str) -> Iterator[str]:
    for heading in entries(section):
        for name in re.findall(r"`([^`]+)`", heading):
            alike = AGENTS if "<Agent>" in name else ("",)
            yield from (name.replace("<Agent>", agent) for agent in alike)


def alert_kinds() -> set[str]:
    """Every kind of alert that the code makes: of groups, and what is said of an agent."""
    found = {"task_archived", *KINDS.values()}
    for folder in ("layers/core/roundsman", "console/roundsman_console"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _called(node) == "agent_alert":
                    kind = node.args[0]
                    assert isinstance(kind, ast.Constant), f"{file.name}:{node.lineno}: say which"
                    found.add(str(kind.value))
    return found


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def test_each_alarm_has_one_entry_and_each_entry_an_alarm(document: Document) -> None:
    alarms = of_type(document, "AWS::CloudWatch::Alarm")
    assert alarms
    assert sorted(names("Alarms")) == sorted(alarms)


def test_each_kind_of_alert_has_one_entry_and_each_entry_a_kind() -> None:
    assert sorted(names("Alerts")) == sorted(alert_kinds())


@pytest.mark.parametrize("section", ["Alerts", "Alarms"])
def test_each_entry_says_what_it_means_what_to_run_what_to_see_and_when_it_is_over(
    section: str,
) -> None:
    for heading, text in entries(section).items():
        assert re.findall(r"^- \*\*(\w+):\*\* \S", text, re.M) == PARTS, heading
        [run] = re.findall(r"\*\*Run:\*\*(.*?)(?=^- \*\*)", text, re.M | re.S)
        assert "`" in run or "](#" in run, f"{heading}: what is to be run?"


def test_every_command_on_the_page_is_one_that_there_is() -> None:
    shown = re.sub(r"^```console\n.*?^```$", "", PAGE, flags=re.M | re.S)
    found = re.findall(r"`roundsman ([^`]+)`", shown)
    assert len(found) > 30
    for command in found:
        words = command.split()
        verb = next((v for v in (" ".join(words[:2]), words[0]) if v in VERBS), None)
        groups = {v.split()[0] for v in VERBS if " " in v}
        assert verb or words[0] in groups, f"roundsman {command}: there is no such verb"
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", command) if verb else ():
            assert option in options_of(verb or ""), f"roundsman {command}"

"""docs/runbook has a page for each alarm and each kind of alert, and for nothing else.

Each of these pages fits one screen and has the same sections, the index leads to it, and the
commands that the runbook names exist.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.alerts.group_alert import KINDS
from roundsman_dev.check.reading import of_type
from roundsman_dev.template import Document
from tests.console.operations_page import NIGHT, RUNBOOK
from tests.console.verbs import VERBS, options_of
from tests.project import TEMPLATE
from tests.support.template_reading import granted
from tests.template.example.agents import AGENTS

ROOT = TEMPLATE.parent
INDEX = RUNBOOK / "index.md"
HEARTBEAT = "heartbeat"  # published by a schedule of the engine's template
SECTIONS = [
    "What it means",
    "How to look",
    "What to do",
    "How to know that it is over",
    "When to call somebody else",
]
ONE_SCREEN = 50  # lines of a page for an alert
LONGEST = 130  # lines of any other page, but for those of LONG
LONG = (NIGHT, RUNBOOK / "restore.md")  # a story, and steps that follow each other

_ABOUT = re.compile(r"^\*\*(?:Alert|Alarm)s?:\*\* .*?(?=\n\n)", re.M | re.S)
_NAME = re.compile(r"`((?:<Agent>)?[A-Za-z_]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+\.md)?(?:#([^)\s]+))?\)")


def names_of(page: Path) -> set[str]:
    """The alerts and alarms that the page is for, as its first lines name them."""
    about = _ABOUT.search(page.read_text(encoding="utf-8"))
    return set(_NAME.findall(about[0])) if about else set()


PAGES = [page for page in sorted(RUNBOOK.glob("*.md")) if names_of(page)]
"""The pages for alerts and alarms."""


def each_agent(names: set[str]) -> Iterator[str]:
    """The names, with `<Agent>` replaced by every agent's name."""
    for name in names:
        alike = AGENTS if "<Agent>" in name else ("",)
        yield from (name.replace("<Agent>", agent) for agent in alike)


ALERTS = ("agent_alert", "orders_alert", "_order_alert")
"""The functions that make an alert of a kind."""


def alert_kinds() -> set[str]:
    """Every kind of alert that the code makes: for failure groups, agents and commands."""
    found = {"task_archived", HEARTBEAT, *KINDS.values()}
    for folder in ("layers/core/roundsman", "console"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if not any(one in text for one in ("agent_alert", "orders_alert", '"alert"')):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and _called(node) in ALERTS:
                    kind = node.args[0]
                    assert isinstance(kind, ast.Constant), f"{file.name}:{node.lineno}: say which"
                    found.add(str(kind.value))
                elif isinstance(node, ast.Dict):
                    found.update(_kinds_in(node))
    return found


def _kinds_in(node: ast.Dict) -> Iterator[str]:
    """The kind of an alert whose whole JSON is written down."""
    for key, value in zip(node.keys, node.values, strict=True):
        is_kind = isinstance(key, ast.Constant) and key.value == "alert"
        if is_kind and isinstance(value, ast.Constant):
            yield str(value.value)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def anchors_of(text: str) -> set[str]:
    """The anchors of the page's headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\s-]", "", one).strip().lower().replace(" ", "-") for one in headings}


def test_each_alarm_and_each_kind_of_alert_has_one_page_and_each_page_one_of_them(
    document: Document,
) -> None:
    alarms = of_type(document, "AWS::CloudWatch::Alarm")
    assert alarms
    named = [name for page in PAGES for name in each_agent(names_of(page))]
    assert sorted(named) == sorted({*alarms, *alert_kinds()})


def test_the_index_leads_from_each_alert_and_alarm_to_its_page() -> None:
    rows = re.findall(r"^\| (`.+) \| \[[^]]+\]\(([a-z-]+\.md)\) \|$", INDEX.read_text(), re.M)
    led = {(name, page) for cells, page in rows for name in _NAME.findall(cells.split(" | ")[0])}
    assert led == {(name, page.name) for page in PAGES for name in names_of(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_of_an_alert_fits_one_screen_and_says_what_to_do(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ONE_SCREEN
    parts = re.findall(r"^## (.+?)\n\n(\S.*?)(?=^## |\Z)", text, re.M | re.S)
    assert [heading for heading, _ in parts] == SECTIONS
    for heading, part in parts[1:3]:
        assert re.search(r"roundsman |filter |\]\(", part), f"{heading}: no command and no link"


@pytest.mark.parametrize("page", sorted(RUNBOOK.glob("*.md")), ids=lambda page: page.stem)
def test_no_page_is_long_and_its_links_within_the_runbook_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert page in LONG or len(text.splitlines()) <= LONGEST
    for name, anchor in _LINK.findall(text):
        target = RUNBOOK / name if name else page
        if target.resolve().parent == RUNBOOK:
            assert target.is_file(), name
            assert not anchor or anchor in anchors_of(target.read_text(encoding="utf-8")), anchor


def test_the_index_leads_to_every_page() -> None:
    led = {name for name, _ in _LINK.findall(INDEX.read_text(encoding="utf-8"))}
    assert {page.name for page in RUNBOOK.glob("*.md")} - {INDEX.name} <= led


def test_every_command_in_the_runbook_exists() -> None:
    found = [command for page in sorted(RUNBOOK.glob("*.md")) for command in commands_of(page)]
    assert len(found) > 30
    for command in found:
        words = command.split()
        verb = next((v for v in (" ".join(words[:2]), words[0]) if v in VERBS), None)
        groups = {v.split()[0] for v in VERBS if " " in v}
        assert verb or words[0] in groups, f"roundsman {command}: there is no such verb"
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", command) if verb else ():
            assert option in options_of(verb or ""), f"roundsman {command}"


def test_operators_who_publish_that_an_agent_is_held_are_given_the_rights_that_this_needs(
    document: Document,
) -> None:
    page = (RUNBOOK / "rights.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `hold`, `release` |")]
    needed = granted(document, "SupervisorRole", "kms")["AlertKey"]
    assert needed
    assert set(re.findall(r"`kms:([A-Za-z]+)`", row)) == needed


def commands_of(page: Path) -> list[str]:
    """The commands in the page's sentences and shell blocks; other tests run the console blocks."""
    shown = re.sub(r"^```console\n.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", shown, re.M | re.S)
    lines = [line.split(" #")[0] for block in blocks for line in block.splitlines()]
    called = "roundsman "
    typed = [one.strip().removeprefix(called) for one in lines if one.strip().startswith(called)]
    return [*re.findall(r"`roundsman ([^`]+)`", shown), *typed]

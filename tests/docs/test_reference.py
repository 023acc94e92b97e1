"""The pages of reference say what the code says.

With REWRITE_PAGES=1 in the environment the first test writes the pages:

    REWRITE_PAGES=1 .venv/bin/python -m pytest tests/docs/test_reference.py
"""

import dataclasses
import os
import re
from types import ModuleType
from typing import Any

import pytest

from roundsman.aws.dynamodb import codec
from roundsman.model.events import COMMAND_KINDS, CommandSource
from roundsman.model.failure import Group
from roundsman.model.field_table import FieldTable
from roundsman.model.holds import Hold
from roundsman.model.leases import Lease
from roundsman.model.queue_lag import ReadMark
from roundsman.model.task import StepToAdd
from roundsman.wire.dead_letters import DeadLetter
from roundsman.wire.messages import AgentRequest, Reply
from tools import field_pages
from tools.reference import BLOCKS, DOCS, END, begin, main, written

CORE = DOCS.parent / "layers" / "core" / "roundsman"
BARE = f"# Title\n\n{begin('commands')}\n{END}\n\nMore.\n"


@pytest.mark.exhaustive
def test_the_generated_blocks_are_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    if os.environ.get("REWRITE_PAGES"):
        assert main([]) == 0
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_a_block_replaces_what_is_between_its_markers_and_nothing_else() -> None:
    text = written(BARE, "commands", "new")
    assert text == f"# Title\n\n{begin('commands')}\n\nnew\n\n{END}\n\nMore.\n"
    assert written(text, "commands", "new") == text


@pytest.mark.parametrize("page", ["", begin("commands"), BARE + BARE, f"{END}{begin('commands')}"])
def test_a_page_without_its_markers_is_refused_with_a_sentence(page: str) -> None:
    with pytest.raises(ValueError, match="the page needs the lines"):
        written(page, "commands", "new")


def test_every_generated_page_says_what_writes_it() -> None:
    for block, (page, _) in BLOCKS.items():
        assert begin(block) in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_the_default_of_an_option_and_of_a_parameter_are_its_value() -> None:
    page = BLOCKS["commands"][1]()
    assert "\n- `--every` (`5`): " in page
    defaults = re.findall(r"^- `--[^(:]*\((.*?)\): ", page, re.MULTILINE)
    assert "`10.0`" in defaults
    assert "<" not in "".join(defaults)
    assert "| `AlertEmail` | *none* |" in BLOCKS["parameters"][1]()


def test_options_that_commands_have_together_are_named_together() -> None:
    commands = BLOCKS["commands"][1]().split("\n### roundsman ")
    also = {one.split("\n")[0]: one.rpartition("Also: ")[2].strip() for one in commands}
    together = "the *filter*, the options of a *bulk run*."
    assert also["undo"].endswith(together)
    assert also["ls"].endswith("the *filter*.")
    assert "`--anyway`" in also["bulk resume"]
    assert "*" not in also["bulk resume"]


def test_a_parameter_that_is_that_of_the_engine_is_described_once() -> None:
    page = BLOCKS["parameters"][1]()
    assert page.count("\n| `PythonRuntime` |") == 1
    assert page.count("Also, as of the engine: ") == 2


def tables_of(module: ModuleType) -> list[FieldTable[Any, Any, Any]]:
    """The field tables of a module, also those in its mappings."""
    values = list(vars(module).values())
    inner = [one for value in values if isinstance(value, dict) for one in value.values()]
    return [one for one in (*values, *inner) if isinstance(one, FieldTable)]


def test_every_field_of_a_record_is_on_the_page() -> None:
    text = (DOCS / "reference" / "records.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^- `(\w+)` \(", text, re.MULTILINE))
    tables = tables_of(codec)
    assert tables
    assert {field.name for table in tables for field in table.fields} - rows == set()


BETWEEN_PARTS = (AgentRequest, Reply, StepToAdd, CommandSource, *COMMAND_KINDS, DeadLetter)
SHARED_ROWS = (ReadMark, Hold, Lease, Group)


@pytest.mark.parametrize("kind", [*BETWEEN_PARTS, *SHARED_ROWS])
def test_every_field_to_which_a_page_leads_has_a_docstring(kind: type) -> None:
    fields = [field.name for field in dataclasses.fields(kind) if field.name != "asked"]
    assert [name for name in fields if name not in field_pages.docstrings(kind)] == []


def test_a_row_says_the_fields_name_value_default_and_meaning() -> None:
    rows = field_pages.step().splitlines()
    found = {row.split("`")[1]: row for row in rows if row.startswith("- `")}
    assert found["Round"] == (
        "- `Round` (whole number, else 1): The generation of the idempotency key;"
        " a fresh key begins the next round."
    )
    assert "(`skipped`, `next agent`, `new key`): " in found["AfterUndo"]
    assert "absent if it stays Undone" in found["AfterUndo"]
    assert "tried before `Agent`" in found["Tried"]
    assert "(true or false, else false): " in found["Waiting"]
    assert ", *required*): " in found["ProcessState"]


def test_a_field_without_a_docstring_is_refused() -> None:
    class Unexplained:
        type: str
        """A short name."""
        message: str

    with pytest.raises(ValueError, match=r"Unexplained\.message needs a docstring"):
        field_pages.table(codec.ERROR, Unexplained)


def test_every_attribute_that_the_codec_writes_by_itself_is_on_the_page() -> None:
    page = (DOCS / "reference" / "records.md").read_text(encoding="utf-8")
    source = (CORE / "aws" / "dynamodb" / "codec.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"([A-Z][a-z]\w*)"(?:: |\])', source))
    assert {"FailureGroup", "FailedAt", "TaskId"} <= names
    assert not [name for name in names if f"`{name}`" not in page]

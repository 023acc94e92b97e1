"""The pages of reference say what the code says.

With REWRITE_PAGES=1 in the environment the first test writes the pages:

    REWRITE_PAGES=1 .venv/bin/python -m pytest tests/docs/test_reference.py
"""

import os
import re
from pathlib import Path

import pytest

from roundsman.wire.messages import AgentRequest, Reply
from tools.reference import BLOCKS, DOCS, END, begin, main, written

CORE = DOCS.parent / "layers" / "core" / "roundsman"
BARE = f"# Title\n\n{begin('commands')}\n{END}\n\nMore.\n"


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


def section(page: str, heading: str) -> str:
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def names_in_tables(text: str) -> set[str]:
    cells = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def written_names(file: Path) -> set[str]:
    """The names of fields that a module of the wire writes, by the keys of its dictionaries."""
    source = file.read_text(encoding="utf-8")
    return set(re.findall(r'"([a-z]\w*)": ', source)) | set(re.findall(r'\["([a-z]\w*)"\]', source))


def test_every_field_of_a_request_and_a_reply_is_in_its_table() -> None:
    for heading, kind in (("Request", AgentRequest), ("Reply", Reply)):
        table = names_in_tables(section("messages.md", heading)) | {"retryAfter"}
        fields = set(kind.__dataclass_fields__) - {"tenant", "read_before", "retry_after"}
        wanted = {"version", *map(camel, fields)}
        assert wanted - table == set(), heading
        assert table - wanted == {"retryAfter"}, heading


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def test_every_field_of_the_other_messages_is_on_the_page() -> None:
    page = (DOCS / "reference" / "messages.md").read_text(encoding="utf-8")
    for module in ("messages", "commands", "dead_letters"):
        names = written_names(CORE / "wire" / f"{module}.py")
        assert names
        assert not [name for name in names if f"`{name}`" not in page], module


def test_every_attribute_of_a_record_is_on_the_page() -> None:
    page = (DOCS / "reference" / "records.md").read_text(encoding="utf-8")
    codec = (CORE / "aws" / "dynamodb" / "codec.py").read_text(encoding="utf-8")
    found = re.findall(r'(?:item\[|_put\(item, )"([A-Z][a-z]\w*)"|"([A-Z][a-z]\w*)": ', codec)
    names = {assigned or listed for assigned, listed in found}
    assert {"TaskId", "DueAt", "Effect", "ContentHash", "CommandId"} <= names
    assert not [name for name in names if f"`{name}`" not in page]

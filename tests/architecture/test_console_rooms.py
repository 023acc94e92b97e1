"""The console has one folder a noun, and in each the same order: what reads and acts, texts, forms
and pages, commands. Imports point only from the later to the earlier ones."""

import pytest

from tests.architecture.test_imports import imported
from tests.support.console_rooms import BROWSER, LIBRARY, MODULES, TERMINAL, TEXT, kind_of

USED = (
    frozenset[str](),
    frozenset({"rich"}),
    frozenset({"jinja2", "starlette", "uvicorn"}),
    frozenset({"click", "rich", "typer"}),
)
"""What may be imported of these libraries, by kind."""
OF_PEOPLE = frozenset().union(*USED)
ENDS_COMMANDS = "roundsman_console.cli_errors"
"""The one module that ends a command with a sentence, and so knows the terminal."""


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_from_commands_to_pages_to_texts_to_what_reads_and_acts(module: str) -> None:
    kind = kind_of(module)
    ours = [name for name in imported(MODULES[module]) if name in MODULES]
    assert [name for name in ours if kind_of(name) > kind] == []


@pytest.mark.parametrize("module", [each for each in MODULES if each != ENDS_COMMANDS])
def test_only_commands_and_pages_know_what_they_are_shown_with(module: str) -> None:
    libraries = {name.partition(".")[0] for name in imported(MODULES[module])}
    assert libraries & OF_PEOPLE <= USED[kind_of(module)]


def test_each_kind_is_there() -> None:
    assert {kind_of(module) for module in MODULES} == {LIBRARY, TEXT, BROWSER, TERMINAL}

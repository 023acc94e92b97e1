"""The console has one folder a noun, and in each the same order: what reads and acts, texts, forms
and pages, commands. Imports point only from the later to the earlier ones."""

from pathlib import Path

import pytest

from tests.architecture.test_imports import imported

ROOT = Path(__file__).parents[2] / "console"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "roundsman_console").rglob("*.py"))
    if "skeleton" not in path.parts and path.name != "__init__.py"
}
LIBRARY, TEXT, BROWSER, TERMINAL = range(4)
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


def kind_of(module: str) -> int:
    """The kind of a module, by its name."""
    _, *folders, name = module.split(".")
    if folders == ["cli"] or name in {"main", "command", "commands", "filter_options"}:
        return LIBRARY if module == "roundsman_console.order.commands" else TERMINAL
    if name.endswith(("_command", "verb_commands")):
        return TERMINAL
    if folders[:1] == ["web"] or name in {"forms", "page"}:
        return BROWSER
    if name.endswith(("_forms", "_fields", "_page", "_pages")):
        return BROWSER
    if name in {"cells", "terminal", "text"} or (name.endswith("_text") and name != "step_text"):
        return TEXT
    return LIBRARY


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

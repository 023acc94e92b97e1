"""Only the faces of the console know what a person is shown something with.

The contracts of imports in pyproject.toml say which floor knows which.
"""

import pytest

from tests.architecture.test_imports import imported
from tests.support.console_rooms import BROWSER, LIBRARY, MODULES, TERMINAL, TEXT, kind_of

USED = {
    LIBRARY: frozenset[str](),
    TEXT: frozenset({"rich"}),
    BROWSER: frozenset({"jinja2", "starlette", "uvicorn"}),
    TERMINAL: frozenset({"click", "rich", "typer"}),
}
"""What may be imported of these libraries, by kind."""
OF_PEOPLE = frozenset().union(*USED.values())


@pytest.mark.parametrize("module", MODULES)
def test_only_faces_know_what_they_are_shown_with(module: str) -> None:
    libraries = {name.partition(".")[0] for name in imported(MODULES[module])}
    assert libraries & OF_PEOPLE <= USED[kind_of(module)]


def test_each_kind_is_there() -> None:
    assert {kind_of(module) for module in MODULES} == {LIBRARY, TEXT, BROWSER, TERMINAL}

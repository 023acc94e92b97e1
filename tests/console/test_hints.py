"""The next commands that are printed: they name the stack that was given."""

import ast
import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from roundsman_console.base import hints
from roundsman_console.base.command_table import command_table
from roundsman_console.base.hints import hint, hinted_json, remember_stack
from roundsman_console.faces.cli.errors import complain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.facts.order.why_facts import DiagnosisDocument
from tests.console.verbs import VERBS, options_of
from tests.support.console_rooms import MODULES, TERMINAL, TEXT, kind_of

CONSOLE = Path(hints.__file__).parent
COMMANDS = [name for one in command_table() for name in one.with_stack]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See: roundsman show ord-1", "See: roundsman show --stack shop ord-1"),
        ("roundsman bulk show b-1. Resume it", "roundsman bulk show --stack shop b-1. Resume it"),
        ("See: roundsman groups", "See: roundsman groups --stack shop"),
        ("roundsman groups show GROUP", "roundsman groups show --stack shop GROUP"),
        ("roundsman show a --stack b", "roundsman show a --stack b"),
        ("`roundsman local up` starts one", "`roundsman local up` starts one"),
        ("roundsman shows it", "roundsman shows it"),
        ("roundsman undo a, or roundsman show a",
         "roundsman undo --stack shop a, or roundsman show --stack shop a"),
    ],
)  # fmt: skip
def test_a_command_names_the_stack_that_was_given(text: str, expected: str) -> None:
    assert hint(text) == text
    remember_stack("shop")
    assert hint(text) == expected


def test_a_hint_is_inert() -> None:
    remember_stack("a b")
    assert hint("roundsman show \x1b[31m") == "roundsman show --stack 'a b' ?[31m"


def test_a_document_names_it_in_the_fields_of_commands_only() -> None:
    remember_stack("shop")
    document = {
        "next": "roundsman show a",
        "do": ["roundsman ls --group f-1", "roundsman show a"],
        "findings": [{"command": None, "evidence": "roundsman show a"}],
        "count": 3,
    }
    assert json.loads(hinted_json(document)) == {
        "next": "roundsman show --stack shop a",
        "do": ["roundsman ls --stack shop --group f-1", "roundsman show --stack shop a"],
        "findings": [{"command": None, "evidence": "roundsman show a"}],
        "count": 3,
    }


def test_a_result_names_it_as_a_document_does() -> None:
    remember_stack("shop")
    found = DiagnosisDocument(
        order_id="a",
        state=None,
        case="unreadable",
        sentence="",
        step=None,
        agent=None,
        evidence=["roundsman show a"],
        next="roundsman show a",
    )
    printed = json.loads(hinted_json(found))
    assert printed["next"] == "roundsman show --stack shop a"
    assert (printed["orderId"], printed["evidence"]) == ("a", ["roundsman show a"])


def test_an_error_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    remember_stack("shop")
    complain("There is none. See: roundsman groups")
    assert capsys.readouterr().err == "There is none. See: roundsman groups --stack shop\n"


def printed(*arguments: str, environment: str | None = None) -> str:
    """What a command prints that prints a hint."""
    one = typer.Typer()

    @one.command()
    def command(stack: StackOption = None) -> None:
        typer.echo(f"{hint('roundsman show a')} {stack}")

    return CliRunner().invoke(one, arguments, env={"ROUNDSMAN_STACK": environment}).stdout.strip()


def test_the_stack_comes_from_the_option_or_else_from_the_environment() -> None:
    assert printed("--stack", "shop") == "roundsman show --stack shop a shop"
    assert printed() == "roundsman show a None"  # that of the last command is forgotten
    assert printed(environment="shop") == "roundsman show --stack shop a shop"
    assert printed("--stack", "b", environment="shop") == "roundsman show --stack b a b"


def test_each_command_with_a_stack_is_known() -> None:
    found = {verb for verb in VERBS if "--stack" in options_of(verb)}
    assert found - {"local up"} == {*COMMANDS} - {"groups"}  # which lists the groups, as groups ls


NAMES_A_COMMAND = re.compile(rf"\broundsman (?:{'|'.join(COMMANDS)})\b")
CARRIERS = {"hint", "ConsoleError", "complain", "InvalidArgument"}


def commands_printed_bare(source: str) -> list[str]:
    """Texts of a module with a command of COMMANDS that go to none of CARRIERS."""
    tree = ast.parse(source)
    carried: set[ast.AST] = set()
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        help_text = isinstance(node, ast.keyword) and node.arg == "help"
        if docstring or help_text or (isinstance(called, ast.Name) and called.id in CARRIERS):
            carried.update(ast.walk(node))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in carried
        and NAMES_A_COMMAND.search(node.value)
    ]


@pytest.mark.parametrize(
    "module",
    [
        module
        for module in MODULES
        if kind_of(module) in {TEXT, TERMINAL}
        if module != "roundsman_console.faces.cli.errors"  # it gives all its texts to `complain`
    ],
)
def test_no_module_prints_a_command_without_the_stack(module: str) -> None:
    assert commands_printed_bare(MODULES[module].read_text(encoding="utf-8")) == []


def test_a_command_printed_bare_is_found() -> None:
    assert commands_printed_bare('print("See: roundsman show a")') == ["See: roundsman show a"]
    assert commands_printed_bare('print(hint(f"roundsman show {a}"))') == []

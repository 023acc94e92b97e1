"""Each command that is printed works as it is printed, with any id: the real parser accepts it.

So does each that a block of a page lets a reader type.
"""

import ast
import html
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import TypeAlias, cast

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

import roundsman
import roundsman_console
import roundsman_dev
from roundsman import command_line as module
from roundsman.command_line import REASON, command_line
from roundsman_console.base.hints import hint, remember_stack
from roundsman_console.faces.cli.options import TypedCommand, _typed
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.table import FindingKind, StandingKind, Trouble
from roundsman_console.main import loaded
from tests.console.verbs import VERBS

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [Path(package.__path__[0]) for package in (roundsman, roundsman_console, roundsman_dev)]
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
TEXTS = [
    *sorted(
        (ROOT / "console" / "roundsman_console" / "faces" / "web" / "templates").glob("*.html")
    ),
    *(ROOT / "stacks").glob("*.yaml"),
]
PAGES = [
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "decisions" not in path.parts),
    *(path for folder in ("examples", "console") for path in sorted((ROOT / folder).rglob("*.md"))),
    *(ROOT / name for name in ("README.md", "PACKAGE.md", "events/README.md")),
]
IDS = (
    *("-1", "--go", "--stack", "--", "~ann", "~", "ord-1", "a b", "it's", '"', "$HOME", "`id`"),
    *("...", "a;b", "x --stack y", "see roundsman show z"),
)
"""Those that submission accepts, and others: names come from outside too."""

REMADE = {
    "console/roundsman_console/faces/cli/options.py",
    "console/roundsman_console/facts/finding/report.py",
}
"""Where a command line is printed that was typed, or that a table has; their tests are below."""


APP = loaded()
Words: TypeAlias = tuple[str, ...]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    remember_stack(None)


def parsed(text: str) -> tuple[str, dict[str, object]]:
    """The verb of a printed command and its parameters, as a shell and the command read them."""
    program, *rest = shlex.split(text)
    assert program == "roundsman"
    command: TyperGroup | TyperCommand = APP
    path = list[str]()
    while isinstance(command, TyperGroup) and rest and rest[0] in command.commands:
        command = cast("TyperGroup | TyperCommand", command.commands[rest[0]])
        path.append(rest.pop(0))
    return " ".join(path), command.make_context(path[-1], rest).params


def values_of(parameters: dict[str, object]) -> list[object]:
    """Every value of the parameters, those of lists one by one."""
    values = parameters.values()
    return [one for v in values for one in (v if isinstance(v, list | tuple) else [v])]


@dataclass(frozen=True)
class Printed:
    """One call of `command_line`, with an id in the place of each value that is not constant."""

    verb: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]


def alternatives(node: ast.expr, an_id: str, named: Mapping[str, ast.expr]) -> list[Words]:
    """The words that an expression may be; `named` are the values of the module's variables."""
    found: list[Words]
    match node:
        case ast.Constant(value=str(text)):
            found = [(text,)]
        case ast.Tuple() | ast.List():
            parts = [alternatives(each, an_id, named) for each in node.elts]
            found = [tuple(chain(*each)) for each in product(*parts)]
        case ast.Starred():
            found = alternatives(node.value, an_id, named)
        case ast.IfExp():
            both = (node.body, node.orelse)
            found = [words for each in both for words in alternatives(each, an_id, named)]
        case ast.Name(id=("REASON" | "GIVES_RESULT") as name) if name not in named:
            found = [getattr(module, name)]
        case ast.Name() if isinstance(named.get(node.id), ast.Tuple | ast.IfExp):
            found = alternatives(named[node.id], an_id, named)
        case _:
            found = [(an_id,)]
    return found


def calls(source: str, an_id: str) -> Iterator[Printed]:
    """Each command that the calls of `command_line` in a module can print."""
    nodes = list(ast.walk(ast.parse(source)))
    named = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, ast.Name):
            if called.id != "command_line":
                continue
            given = [ast.Tuple(node.args), *(each.value for each in node.keywords)]
            words = [alternatives(each, an_id, named) for each in given]
            for (verb, *arguments), *options in product(*words):
                yield Printed(verb, tuple(arguments), tuple(chain(*options)))


CALLERS = [
    path
    for path in SOURCES
    if "command_line(" in path.read_text() and path != Path(module.__file__)
]


@pytest.mark.parametrize("an_id", IDS)
def test_every_command_that_is_printed_works_with_any_id(an_id: str) -> None:
    found = 0
    for path in CALLERS:
        if str(path.relative_to(ROOT)) in REMADE:
            continue
        for one in calls(path.read_text(), an_id):
            found += 1
            text = command_line(one.verb, *one.arguments, options=one.options)
            for stack in (None, "a b"):
                remember_stack(stack)
                verb, parameters = parsed(hint(text))
                assert verb == one.verb, text
                # `changes` takes the stack from samconfig.toml, and has no such option.
                assert parameters.get("stack", stack) == stack, text
                missing = [word for word in one.arguments if word not in values_of(parameters)]
                assert not missing, text
                if an_id in (*one.arguments, *one.options):
                    assert an_id in values_of(parameters), text
    assert found > 30


@pytest.mark.parametrize("kind", [*FindingKind, *StandingKind])
@pytest.mark.parametrize("an_id", IDS)
def test_the_command_of_a_finding_works_with_any_id(kind: Trouble, an_id: str) -> None:
    text = Finding(kind, an_id, "", about=an_id).command
    if text is None or not (kind.command or "").startswith("roundsman "):
        return  # a command of the AWS CLI, or one that the finding has, as it is
    _, parameters = parsed(hint(text))
    if "{" in (kind.command or ""):
        assert an_id in values_of(parameters), text


NAMED = re.compile(r"(?P<before>.?)\broundsman (?=[a-z])", re.DOTALL)
END = re.compile(
    r"[`<;,&)\n\"\\]|[.:](?: |$)|"
    r" (?:says|shows|lists|and|or|has|needs|makes|moves|adds|writes|gives|sends|printed|that)\b"
)
CHECKED = ("roundsman local", "roundsman add agent", "roundsman groups")
"""What a number, a name that was checked, or the word of a command may follow."""


def written(source: str) -> Iterator[tuple[str, bool]]:
    """The texts of a module, and whether a value follows: no docstrings, and no help of options."""
    tree, skipped = ast.parse(source), set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) or (isinstance(node, ast.keyword) and node.arg == "help"):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            for part, after in zip(node.values, [*node.values[1:], None], strict=True):
                if isinstance(part, ast.Constant):
                    skipped.add(part)
                    yield str(part.value), after is not None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value, False


def commands_in(text: str) -> Iterator[tuple[str, bool]]:
    """Each command in a text, up to its end, and whether it is only named: in backquotes."""
    for found in NAMED.finditer(text):
        rest = text[found.start() + len(found["before"]) :]
        command = END.split(rest)[0].strip()
        if command.split()[1] in APP.commands:
            yield command, found["before"] == "`"


def problems(source: str) -> list[str]:
    """The commands in the texts of a module that do not work as they are printed."""
    found = []
    for text, followed in written(source):
        for command, is_name in commands_in(text):
            if followed and text.rstrip(" '").endswith(command):
                if not command.startswith(CHECKED):
                    found.append(f"{command}: print it with command_line")
            elif not works(command, is_name=is_name):
                found.append(command)
    return found


def works(command: str, *, is_name: bool = False) -> bool:
    if is_name and command.removeprefix("roundsman ") in VERBS:
        return True
    try:
        parsed(command)
    except (Exception, SystemExit):  # noqa: BLE001 - a wrong usage, or whatever one raises
        return False
    return True


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_text_of_the_code_has_commands_that_work(path: Path) -> None:
    assert problems(path.read_text()) == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_page_and_alarm_has_commands_that_work(path: Path) -> None:
    text = re.sub(r"\{\{.*?\}\}", "NAME", html.unescape(path.read_text()))
    wrong = [command for command, name in commands_in(text) if not works(command, is_name=name)]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        'print(f"See: roundsman show {order}")',
        'print("Resume it with: roundsman bulk resume b-1")',
        'print("roundsman resubmit ord-1 --agian")',
        'print("see: roundsman reconcile --json")',
        """print(f"roundsman release '{agent}'")""",
    ],
)
def test_a_printed_command_that_does_not_work_is_found(source: str) -> None:
    assert len(problems(source)) == 1


@pytest.mark.parametrize(
    "source", ['print("`roundsman bulk resume` resumes it")', 'print("See: roundsman ls. More")']
)
def test_a_command_that_is_named_or_works_is_none(source: str) -> None:
    assert problems(source) == []


BLOCK = re.compile(r"^( *)```(sh|console|)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
END_OF_TYPED = re.compile(r"\s+#\s|\s(?:&&|\|\|?|;|>)\s")
"""What ends a command on the line of a block: a comment, another command, a file."""


def typed_in(page: str) -> Iterator[str]:
    """The commands that the blocks of a page let a reader type."""
    for _, kind, block in BLOCK.findall(page):
        for line in block.replace("\\\n", " ").splitlines():
            prompt = r"\$ " if kind == "console" else r"(?:\.venv/bin/)?"
            typed = re.match(rf" *{prompt}(roundsman .*)", line)
            if typed is not None and "[OPTIONS]" not in line:
                yield END_OF_TYPED.split(typed[1])[0]


def test_each_command_in_a_block_of_a_page_is_one_that_can_be_typed() -> None:
    found = [(page, one) for page in PAGES for one in typed_in(page.read_text(encoding="utf-8"))]
    assert len(found) > 150
    assert [f"{page.name}: {one}" for page, one in found if not works(one)] == []


@pytest.mark.parametrize(
    "line",
    ["roundsman shwo ord-1", "roundsman show", "roundsman show ord-1 --nope", "roundsman bulk"],
)
def test_a_command_of_a_page_that_cannot_be_typed_is_noticed(line: str) -> None:
    [command] = typed_in(f"```sh\n{line} && make  # now\n```\n")
    assert not works(command)


@pytest.mark.parametrize("an_id", IDS)
def test_what_was_typed_can_be_typed_again_with_more_options(an_id: str) -> None:
    typed = command_line("resubmit", an_id, "ord-2", options=("--reason", an_id, "--set", "a=1"))
    context = VERBS["resubmit"].make_context("resubmit", shlex.split(typed)[2:])
    again = _typed(cast("typer.Context", context))
    assert isinstance(again, TypedCommand)
    remember_stack("shop")
    verb, parameters = parsed(hint(again.with_options("--go", "--not-done", an_id)))
    assert verb == "resubmit"
    expected = {"orders": [an_id, "ord-2"], "reason": an_id, "sets": ["a=1"], "not_done": [an_id]}
    assert {name: parameters[name] for name in expected} == expected
    assert (parameters["go"], parameters["stack"]) == (True, "shop")


def test_a_command_is_readable_where_nothing_is_to_be_quoted() -> None:
    assert command_line("show", "ord-1") == "roundsman show ord-1"
    assert command_line("run", "ord-1", options=REASON) == "roundsman run ord-1 --reason '...'"
    assert command_line("run", "-1", options=REASON) == "roundsman run --reason '...' -- -1"
    assert command_line("show", "~ann") == "roundsman show '~ann'"

"""Every command on the pages about recovery is one that its program takes."""

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import botocore.session
import click
import pytest
import typer
from botocore import xform_name

from roundsman_console.facts.table.record import TABLES
from tests.console.verbs import VERBS

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook"
PAGES = (
    "restore.md",
    "stack-deleted.md",
    "first-deployment-failed.md",
    "region-lost.md",
    "redrive.md",
)
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')
INNER = re.compile(r"\$\(([^()]*)\)")
ASSIGNED = re.compile(r"^[a-z]+=")
INTO_FILE = re.compile(r" > [a-z]+\.[a-z]+$")
OF_EVERY_COMMAND = {"--query", "--output", "--region"}
FILE_COMMANDS = {("s3", "cp"): 2, ("s3", "ls"): 1}
"""The commands of `aws` that are no operation of a service, with the number of their arguments."""


def commands_in(line: str) -> Iterator[str]:
    """The commands of one line of a shell script; each in $(...) is a command of its own."""
    texts: list[str] = []

    def keep(found: re.Match[str]) -> str:
        texts.append(found[0])
        return f"<{len(texts) - 1}>"

    bare = QUOTED.sub(keep, line.split(" # ", maxsplit=1)[0])
    statements = []
    while found := INNER.search(bare):
        statements.append(found[1])
        bare = bare.replace(found[0], "VALUE", 1)
    statements += bare.split("; ")
    for statement in statements:
        typed = ASSIGNED.sub("", INTO_FILE.sub("", statement.strip()))
        if typed.split(" ")[0] in ("aws", "sam", "roundsman"):
            yield re.sub(r"<(\d+)>", lambda one: texts[int(one[1])], typed)


def commands_on(page: str) -> list[str]:
    text = (RUNBOOK / page).read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    return [command for line in lines for command in commands_in(line)]


def check(typed: str) -> None:
    """Raise AssertionError, or what the command line of roundsman raises, for a wrong command."""
    program, *words = shlex.split(typed)
    if program == "aws":
        check_aws(words)
    elif program == "sam":
        check_sam(words)
    else:
        verb = " ".join(words[:2]) if " ".join(words[:2]) in VERBS else words[0]
        assert verb in VERBS, f"roundsman has no command {verb}"
        VERBS[verb].make_context(verb, words[len(verb.split()) :])


def check_aws(words: list[str]) -> None:
    service, operation, *rest = words
    if (service, operation) in FILE_COMMANDS:
        assert len(rest) == FILE_COMMANDS[service, operation], rest
        return
    session = botocore.session.get_session()
    model = session.get_service_model(service)
    if operation == "wait":
        waiters = session.get_waiter_model(service)
        waiter = {xform_name(name, "-"): name for name in waiters.waiter_names}[rest.pop(0)]
        name = waiters.get_waiter(waiter).operation
    else:
        name = {xform_name(one, "-"): one for one in model.operation_names}[operation]
    shape = model.operation_model(name).input_shape
    assert shape is not None, f"aws {service} {operation} takes nothing"
    members = {f"--{xform_name(one, '-')}": one for one in shape.members}
    flags = [word for word in rest if word.startswith("--")]
    given = {members.get(flag) or members.get(flag.replace("--no-", "--")) for flag in flags}
    unknown = [
        flag
        for flag in flags
        if not {flag, flag.replace("--no-", "--")} & (members.keys() | OF_EVERY_COMMAND)
    ]
    assert unknown == [], f"aws {service} {operation} has no {unknown}"
    missing = set(shape.required_members) - given
    assert missing == set(), f"aws {service} {operation} needs {missing}"


def check_sam(words: list[str]) -> None:
    command: click.Command = import_module(f"samcli.commands.{words[0]}.command").cli
    options = {option for parameter in command.params for option in parameter.opts}
    unknown = [word for word in words[1:] if word.startswith("--") and word not in options]
    assert unknown == [], f"sam {words[0]} has no {unknown}"


EVERY = [(page, command) for page in PAGES for command in commands_on(page)]


@pytest.mark.parametrize(("page", "typed"), EVERY)
def test_each_command_on_the_page_is_one_that_its_program_takes(page: str, typed: str) -> None:
    check(typed)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page_are_found(page: str) -> None:
    lines = BLOCK.findall((RUNBOOK / page).read_text(encoding="utf-8"))
    programs = re.compile(r"(?<![\w/])(?:aws|sam|roundsman) (?=[a-z0-9-]+ ?)")
    assert len(commands_on(page)) == sum(len(programs.findall(block)) for block in lines)


@pytest.mark.parametrize(
    "wrong",
    [
        "aws dynamodb delete-table --tablename orders",
        "aws dynamodb delete-table",
        "aws dynamodb remove-table --table-name orders",
        "aws dynamodb wait table-gone --table-name orders",
        "aws s3 cp one",
        "sam deploy --stack roundsman",
        "roundsman reconcile --go",
        "roundsman restore --go",
    ],
)
def test_a_command_that_its_program_does_not_take_is_noticed(wrong: str) -> None:
    with pytest.raises((AssertionError, KeyError, typer.BadParameter)):
        check(wrong)


def test_the_tables_that_are_restored_are_all_tables_of_the_engine() -> None:
    template = (RUNBOOK.parents[1] / "stacks" / "engine.yaml").read_text(encoding="utf-8")
    tables = re.findall(r"^  (\w+Table):\n    Type: AWS::DynamoDB::Table", template, re.MULTILINE)
    assert sorted(TABLES) == sorted(f"{table}Name" for table in tables)


LOOP = re.compile(r"^ *(?:for|while|until|done)\b|\bxargs\b|contains\(", re.MULTILINE)


@pytest.mark.parametrize("page", sorted(path.name for path in RUNBOOK.glob("*.md")))
def test_no_page_has_a_loop_over_what_it_found_by_a_part_of_a_name(page: str) -> None:
    # One that found another stack's table would delete it.
    blocks = BLOCK.findall((RUNBOOK / page).read_text(encoding="utf-8"))
    assert [block for block in blocks if LOOP.search(block)] == []


@pytest.mark.parametrize(
    "wrong", ["for id in $(x); do\n", "x | xargs y\n", "aws x --query \"A[?contains(@, 'a')]\"\n"]
)
def test_a_loop_is_noticed(wrong: str) -> None:
    assert LOOP.search(wrong)

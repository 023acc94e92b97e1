"""`--help` of every verb: it fits a terminal, and its example is one that the verb takes."""

import os
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from roundsman_console.commands import DEVELOP, LOOK, REPAIR
from roundsman_console.main import LazyCommand, app, lazy_commands
from tests.console.verbs import VERBS, examples, options_of

WIDTH = 80


def help_of(*words: str, width: int = WIDTH) -> str:
    """What `--help` prints on a terminal so wide."""
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, [*words, "--help"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_an_example_that_the_verb_takes(verb: str) -> None:
    assert examples(verb), f"the help of {verb} has no line `Example: roundsman {verb} ...`"
    for example in examples(verb):
        words = shlex.split(example)
        start = ["roundsman", *verb.split()]
        assert words[: len(start)] == start
        # Reads and checks the arguments as a call would, and calls nothing.
        VERBS[verb].make_context(verb, words[len(start) :])


@pytest.mark.parametrize("verb", VERBS)
def test_no_line_of_the_help_of_a_verb_is_indented(verb: str) -> None:
    lines = (VERBS[verb].help or "").splitlines()
    assert lines
    assert [line for line in lines if line.startswith(" ")] == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_fits_eighty_columns(verb: str) -> None:
    shown = help_of(*verb.split())
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "…" not in shown, "something is cut off"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_shows_the_example_as_it_is_typed(verb: str) -> None:
    # Brackets are markup to what draws the help, and would be left out.
    shown = " ".join(help_of(*verb.split(), width=400).split())
    for example in examples(verb):
        assert example in shown


def test_the_list_of_verbs_fits_eighty_columns() -> None:
    groups = {verb.split()[0] for verb in VERBS if " " in verb}
    for words in ((), *((group,) for group in sorted(groups))):
        assert max(map(len, help_of(*words).splitlines())) <= WIDTH


def test_the_list_of_commands_is_in_groups() -> None:
    shown = help_of()
    headings = [shown.index(f" {name} ") for name in (DEVELOP, LOOK, REPAIR)]
    assert headings == sorted(headings)
    assert headings[0] < shown.index(" init ") < headings[1] < shown.index(" show ") < headings[2]
    assert headings[2] < shown.index(" resubmit ")
    assert " Commands " not in shown, "a command is in no group"


@pytest.mark.parametrize("listed", lazy_commands(), ids=lambda command: command.name)
def test_the_summary_of_a_command_is_the_first_paragraph_of_its_help(listed: LazyCommand) -> None:
    first = " ".join((listed.load().help or "").split("\n\n")[0].split())
    assert first.split(" Example: ")[0] == listed.help


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()])
def test_a_list_of_commands_imports_no_command(words: tuple[str, ...]) -> None:
    program = (
        "import sys\nfrom roundsman_console.main import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        "heavy = {'boto3', 'botocore', 'yaml', 'roundsman.model', 'roundsman_console.faces'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_completion_of_a_command_imports_no_command() -> None:
    program = (
        "import sys\nfrom roundsman_console.main import app\n"
        "try: app(prog_name='roundsman')\nexcept SystemExit: pass\n"
        "print(sorted({'boto3', 'roundsman_console.faces'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "_ROUNDSMAN_COMPLETE": "complete_bash",
            "COMP_WORDS": "roundsman re",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"resubmit", "resolve", "release"} <= set(done.stdout.split())
    assert done.stderr.splitlines()[-1] == "[]"


ASKS_FOR_THE_NAME = ("delete", "restore prepare", "restore replace", "restore start", "rollback")
"""The verbs that are confirmed by the name of the stack: --confirm NAME."""


def test_a_script_need_not_know_which_repairs_ask() -> None:
    """Those that only look, and those of the project, are not in this group."""
    changing = {
        verb
        for verb, command in VERBS.items()
        if {"--by", "--as"} & {*options_of(verb)} or verb == "answer"
    }
    assert {"release", "bulk stop", "resubmit"} <= changing
    without = {verb for verb in changing if "--yes" not in options_of(verb)}
    assert without <= {*ASKS_FOR_THE_NAME}

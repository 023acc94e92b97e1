"""What a terminal, a pipe and a shell see of verbs: width, colours, plain text, completion."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from roundsman.model.holds import BREAKER, Hold
from roundsman_console.main import app
from tests.console.operators import Operator, holds_of
from tests.console.verbs import STACK_VERBS, typed_example
from tests.moto.orders import order

EVIL = "\x1b[31m\u202e\x07[red]gone[/red]\x9b\n"
READING = [verb for verb in STACK_VERBS if "reason" not in " ".join(typed_example(verb))]
"""Verbs whose example changes nothing."""


def types(width: int, *words: str, **environment: str) -> Result:
    return CliRunner(env={"COLUMNS": str(width), **environment}).invoke(app, words)


def troubled(operator: Operator) -> None:
    """Orders and agents, with what a terminal would act on in all that people and services say."""
    world = operator.world
    world.faults(
        {"operation": "POST /messages", "status": 422, "body": {"error": f"No{EVIL}Mailbox"}}
    )
    world.submit(order("ord-1001"), order("ord-1002", processIn=3600))
    world.run()
    assert world.task("ord-1001").state == "Archived"
    options = ("--as", EVIL, "--reason", EVIL, "--yes")
    operator.types("extend", "ord-1001", "--by", "10m", *options)
    operator.types("cancel", "ord-1002", *options)
    operator.types("hold", "mail", "--for", "30m", *options)
    at = world.clock()
    holds_of(world).hold(Hold("payment", BREAKER, at, at + 60_000, EVIL, EVIL))


@pytest.mark.exhaustive
def test_what_people_and_services_say_is_plain_text_in_every_verb_and_fits_the_terminal(
    operator: Operator, examples_folder: Path
) -> None:
    troubled(operator)
    shown = ""
    for verb in READING:
        for width in (100, 40):
            result = types(width, *typed_example(verb))
            assert isinstance(result.exception, SystemExit | None), (verb, result.exception)
            assert "Traceback" not in result.output, verb
            for line in result.output.splitlines():
                assert line.isprintable(), (verb, line)
            shown += result.stdout
        at_forty = types(40, *typed_example(verb)).stdout.splitlines()
        tables = [line for line in at_forty if "  " in line.strip()]
        assert max(map(len, tables), default=0) <= 40, (verb, tables)
    assert "[red]gone" in shown.replace("\n", "").replace(" ", ""), "nothing evil was shown at all"


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}])
def test_colours_are_for_terminals_that_want_them(
    operator: Operator, environment: dict[str, str]
) -> None:
    operator.world.submit(order("ord-1001"))
    operator.world.run()
    assert "\x1b[3" not in types(100, *typed_example("show"), **environment).output
    assert "\x1b[3" in types(100, *typed_example("show"), FORCE_COLOR="1").output


def test_a_pipe_that_is_closed_ends_a_verb_without_a_word() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from roundsman_console.main import app; app()", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_taught_to_complete(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Else it is asked of the system which shell this runs in, and in tests there may be none.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = CliRunner().invoke(app, ["--show-completion", shell], prog_name="roundsman")
    assert shown.exit_code == 0, shown.output
    assert f"_ROUNDSMAN_COMPLETE=complete_{shell}" in shown.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("roundsman re", {"resubmit", "resolve", "release"}),
        ("roundsman ls --state Und", {"Undoing", "Undone"}),
        ("roundsman resubmit --fr", {"--fresh-key"}),
        ("roundsman local s", {"status"}),
    ],
)
def test_verbs_options_and_states_are_completed_in_bash_and_zsh(
    typed: str, completed: set[str]
) -> None:
    bash = {
        "_ROUNDSMAN_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    output = CliRunner().invoke(app, [], prog_name="roundsman", env=bash).stdout
    assert completed <= set(output.split()), output
    zsh = {"_ROUNDSMAN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": typed}
    output = CliRunner().invoke(app, [], prog_name="roundsman", env=zsh).stdout
    for word in completed:
        assert f'"{word}"' in output, output

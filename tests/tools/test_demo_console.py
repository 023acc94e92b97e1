"""`make demo ARGS=--ui`: the console is served while the demo runs, and stopped with it."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from roundsman_console.base.errors import ConsoleError
from tools.demo.served_console import explore, served_console

LINK = "http://127.0.0.1:1/session?token=t"
SERVES = f'import sys, time; print(\'{{"url": "{LINK}"}}\', flush=True); time.sleep(600)'


def console_in_memory() -> Console:
    return Console(file=io.StringIO(), width=200)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_link_is_printed_and_the_console_ends_with_the_demo() -> None:
    console = console_in_memory()
    with served_console(console, "shop", command=(sys.executable, "-c", SERVES)) as process:
        assert LINK in text_of(console)
        assert process.poll() is None
    assert process.returncode is not None


def test_a_console_that_does_not_start_is_one_sentence() -> None:
    command = (sys.executable, "-c", "raise SystemExit(1)")
    with (
        pytest.raises(ConsoleError, match="did not start"),
        served_console(console_in_memory(), "shop", command=command),
    ):
        pytest.fail("it did not start")


def test_all_stays_up_until_somebody_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    console = console_in_memory()
    with served_console(console, "shop", command=(sys.executable, "-c", SERVES)) as process:

        def interrupted(_timeout: float | None = None) -> int:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(subprocess.Popen, "wait", lambda self: interrupted())
        explore(console, process)
    assert "Ctrl-C stops everything." in text_of(console)
    assert "Stopping." in text_of(console)

"""docs/tutorial.md from its first command to its last, in an empty folder with only the wheel.

The commands are those of the page, in their order, in one terminal. Only the port is another, so
that the test runs beside a person's own local AWS; and `show` is repeated until an order has ended.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_dev.local.emulator import free_port
from tests.emulator.terminal import Terminal
from tests.support.tutorial_page import TEXT, command_blocks
from tests.support.wheels import build_wheel

pytestmark = [pytest.mark.stack, pytest.mark.long]

ENDS = {"show first": "purchase  Completed", "show refused": "purchase  Undone"}
REASON = "purchase_payment: failed for good: Refused"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal in an empty folder that has the wheel, with Python and nothing else."""
    folder = tmp_path / "empty"
    build_wheel(folder)
    terminal = Terminal(folder, tmp_path / "state")
    try:
        yield terminal
    finally:
        if (terminal.folder / "template.yaml").exists():
            terminal.run("roundsman local down --all || true")


def test_the_tutorial_runs_from_its_first_command_to_its_last(terminal: Terminal) -> None:
    port = free_port()
    ports = {
        "roundsman local up": f"roundsman local up --port {port}",
        "127.0.0.1:4510": f"127.0.0.1:{port}",
    }
    for text in (*ports, *ENDS.values(), REASON):
        assert text in TEXT
    printed: dict[str, str] = {}
    for command in "".join(command_blocks()).splitlines():
        line = command
        for of_the_page, here in ports.items():
            line = line.replace(of_the_page, here)
        end = next((end for verb, end in ENDS.items() if line.endswith(verb)), None)
        printed[command] = terminal.run_until(line, end) if end else terminal.run(line)
    assert {f"roundsman {verb}" for verb in ENDS} < set(printed)
    assert REASON in " ".join(printed["roundsman show refused"].split())
    assert terminal.run("roundsman local status || test $? = 3") == "No local AWS runs here.\n"

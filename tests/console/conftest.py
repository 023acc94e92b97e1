"""An operator before a deployment of its own."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from roundsman_console.base import clock as polling
from roundsman_console.facts.set_aside import peek
from roundsman_testing.stack import Clock, Services
from tests.console.operators import Operator, Patience, let_go_is_seen_at_once
from tests.project import deployed_project, of_each_agent
from tests.support.forked import CommandLine, command_line


@pytest.fixture
def stack_parameters() -> Mapping[str, str]:
    """The parameters of the operator's stack."""
    # An order whose service always fails would be held for good, and never need its operator.
    return of_each_agent("BreakerFailures", "100")


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch,
    roundsman_services: Services,
    roundsman_clock: Clock,
    stack_parameters: Mapping[str, str],
) -> Iterator[Operator]:
    """Someone at the command line of a stack on moto, whose scheduler works as they wait."""
    with deployed_project(roundsman_services, roundsman_clock, stack_parameters) as world:
        patience = Patience(world.run)
        monkeypatch.setattr(polling, "time", patience)
        monkeypatch.setattr(peek, "LONG_POLL", 0)  # on a clock that stands, it would never end
        with let_go_is_seen_at_once(world):
            yield Operator(world, patience)


@pytest.fixture(scope="session")
def forked(session_without_real_aws: None) -> Iterator[CommandLine]:
    """The command line in a process of its own for each command, with its libraries imported."""
    with command_line() as found:
        yield found


@pytest.fixture
def examples_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder where the examples in the help find their files, and may leave some."""
    for name in ("events", "samconfig.toml"):
        (tmp_path / name).symlink_to(Path(__file__).parents[2] / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path

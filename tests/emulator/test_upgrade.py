"""An application is upgraded to the next release while its tasks are in flight.

The previous release is this one, and the next one is made of it: another version, other settings in
both nested templates, and another log entry in the layer. Both are installed from their wheels.
"""

import json
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from roundsman.model.states import END_STATES
from roundsman_console.aws.local_record import Instances, LocalRecord
from roundsman_dev.local.deploy import emulator_session
from roundsman_dev.local.emulator import free_port
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import PROJECT, SUPERVISOR_INTERVAL
from tests.emulator.projects import replace
from tests.emulator.terminal import PATIENCE, Terminal
from tests.moto.orders import effects_of
from tests.support.wheels import build_wheel, copy_sources

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import FunctionConfigurationResponseTypeDef

pytestmark = [pytest.mark.stack, pytest.mark.verify]

AGENTS = ("stock", "payment")
RELEASES = Path("console") / "roundsman_dev" / "project" / "releases.json"
HERE = str(json.loads((PROJECT / RELEASES).read_text())[-1]["version"])
NEXT = "99.0.0"
NEXT_MEMORY = 320
DECIDED = "decided by the next release"
DOWN = [f"down-{n}" for n in range(5)]
IN_FLIGHT = {"undoing": "Undone", "called": "Completed", "scheduled": "Completed"} | dict.fromkeys(
    DOWN, "Completed"
)
FAULTS = (
    {"operation": "DELETE /stock", "orderId": "undoing", "status": 503},
    {"operation": "POST /payment", "orderId": "called", "hang": True},
    *({"operation": "POST /payment", "orderId": each, "status": 503} for each in DOWN),
)
ENDED = {str(state) for state in END_STATES}


@pytest.fixture
def services() -> Iterator[RemoteServices]:
    with RemoteServices(stand_ins=AGENTS) as started:
        yield started


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal whose Python has the libraries of this project, and no roundsman."""
    (tmp_path / "work").mkdir()
    terminal = Terminal(tmp_path / "work", tmp_path / "state")
    terminal.run("python3 -m venv .venv")
    [libraries] = (tmp_path / "work" / ".venv").glob("lib/python*/site-packages")
    (libraries / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    terminal.run('export PATH="$PWD/.venv/bin:$PATH"')
    try:
        yield terminal
    finally:
        if (terminal.folder / "template.yaml").exists():
            terminal.run("roundsman local down --all || true")


def next_release(folder: Path) -> Path:
    """The wheel of a release after this one."""
    sources = copy_sources(folder)
    replace(sources / "pyproject.toml", f'\nversion = "{HERE}"', f'\nversion = "{NEXT}"')
    releases = json.loads((sources / RELEASES).read_text())
    releases.append({"version": NEXT, "direct_from": HERE})
    (sources / RELEASES).write_text(json.dumps(releases))
    variable = "        POWERTOOLS_METRICS_NAMESPACE: !Sub Roundsman/${Stack}\n"
    replace(sources / "stacks/agent.yaml", variable, f"{variable}        STACKS_OF: {NEXT}\n")
    memory = "    Description: Memory of the scheduler function, in MB\n    Default: "
    replace(sources / "stacks/engine.yaml", f"{memory}256\n", f"{memory}{NEXT_MEMORY}\n")
    handler = sources / "layers/core/roundsman/aws/handlers/scheduler.py"
    for logged in ("log_measured", "logger().info"):
        replace(handler, f'{logged}("decided"', f'{logged}("{DECIDED}"')
    return build_wheel(folder / "dist", sources)


def install(terminal: Terminal, wheel: Path) -> None:
    terminal.run(f'python3 -m pip install --quiet --no-deps --no-index "{wheel}"')


def order(terminal: Terminal, order_id: str, **more: object) -> None:
    """Submit an order as a person does."""
    event = {"orderId": order_id, "customer": "A. Reader", **more}
    (terminal.folder / "order.json").write_text(json.dumps(event))
    terminal.run("roundsman submit order.json")


@dataclass(frozen=True)
class Local:
    """The local AWS of the application, read as its account's root."""

    record: LocalRecord
    log: Path

    def states(self) -> dict[str, str]:
        """The state of each task."""
        dynamodb: DynamoDBClient = emulator_session(self.record).client(
            "dynamodb", endpoint_url=self.record.endpoint
        )
        found = dynamodb.scan(TableName=self.record.outputs["TasksTableName"], ConsistentRead=True)
        return {item["TaskId"]["S"]: item["State"]["S"] for item in found["Items"]}

    def settings(self, function: str) -> "FunctionConfigurationResponseTypeDef":
        """The settings of a function, by the name of its output."""
        functions: LambdaClient = emulator_session(self.record).client(
            "lambda", endpoint_url=self.record.endpoint
        )
        name = self.record.outputs[f"{function}FunctionName"]
        return functions.get_function_configuration(FunctionName=name)

    def wait_for(self, true: Callable[[dict[str, str]], bool]) -> None:
        """Wait until this is so of the states."""
        end = time.monotonic() + PATIENCE
        while not true(self.states()):
            assert time.monotonic() < end, self.states()
            time.sleep(0.5)


def local_aws(terminal: Terminal, port: int) -> Local:
    """The local AWS that runs on a port; the terminal's commands use it from now on."""
    instance = Instances(terminal.folder).at(port)
    record = instance.read()
    assert record is not None
    terminal.environment |= record.client_environment
    return Local(record, instance.logs / "emulator.log")


def test_tasks_in_flight_survive_an_upgrade_to_the_next_release(
    terminal: Terminal, services: RemoteServices, tmp_path: Path
) -> None:
    previous, following = build_wheel(tmp_path / "previous"), next_release(tmp_path / "next")
    install(terminal, previous)
    terminal.run(f"roundsman init shop {' '.join(f'--agent {name}' for name in AGENTS)}")
    terminal.run("cd shop")
    (terminal.folder / ".cache").symlink_to(PROJECT / ".cache")  # the emulator is there
    services.application.set_faults(json.loads(json.dumps({"rules": FAULTS})))
    port, seconds = free_port(), SUPERVISOR_INTERVAL
    to = f"--port {port} --services {services.url} --param SupervisorIntervalSeconds={seconds}"
    terminal.run(f"roundsman local up {to}")
    local = local_aws(terminal, port)
    order(terminal, "undoing", customer="refused-by-payment")
    local.wait_for(lambda states: states.get("undoing") == "Undoing")
    order(terminal, "scheduled", processing={"processIn": 3600})
    for order_id in ("called", *DOWN):
        order(terminal, order_id)
    local.wait_for(lambda states: states.keys() == IN_FLIGHT.keys())
    assert DECIDED not in local.log.read_text()

    install(terminal, following)
    output = terminal.run("roundsman upgrade --yes")
    assert f"+        STACKS_OF: {NEXT}" in output
    assert f"+    Default: {NEXT_MEMORY}" in output
    assert f"From release {HERE} to {NEXT}; releases from {HERE} on may be skipped." in output
    assert [path.name for path in (terminal.folder / "vendor").iterdir()] == [following.name]
    assert f"=={NEXT}\n" in (terminal.folder / "requirements.txt").read_text()
    terminal.run("roundsman check")
    assert not set(local.states().values()) & ENDED
    terminal.run(f"roundsman local deploy --port {port}")
    for agent in ("Stock", "Payment"):
        assert local.settings(agent)["Environment"]["Variables"]["STACKS_OF"] == NEXT
    assert local.settings("Scheduler")["MemorySize"] == NEXT_MEMORY

    services.application.set_faults({"rules": []})
    order(terminal, "new")
    terminal.run("roundsman run scheduled --as ops --reason 'the release is there' --yes")
    expected = IN_FLIGHT | {"new": "Completed"}
    local.wait_for(lambda states: states == expected)
    assert DECIDED in local.log.read_text()
    performed = {"stock perform": 1, "payment perform": 1}
    for order_id, state in expected.items():
        undone = {"stock perform": 1, "stock undo": 1}
        assert effects_of(services, order_id) == (performed if state == "Completed" else undone)

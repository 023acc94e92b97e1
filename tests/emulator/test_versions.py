"""Deployments under load: no function runs code and layers of two versions, and none is lost.

Going back to the former versions is a command, also from code that cannot be imported.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner, Result

from roundsman.aws.outputs import LIVE
from roundsman_console.aws.local_record import Instances
from roundsman_console.main import app
from roundsman_dev.local import LocalAws, update
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import PROJECT, SUPERVISOR_INTERVAL, DeployedStack
from tests.emulator.helpers import PATIENCE, is_in
from tests.emulator.projects import WORKFLOWS, copied, replace
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

PARAMETERS = {"SupervisorIntervalSeconds": str(SUPERVISOR_INTERVAL)}
BETWEEN = 3  # seconds from one order of the load to the next
FUNCTIONS = ("submission", "agents/inventory", "agents/payment", "agents/shipping", "agents/mail")
"""The functions that import the workflows."""
LONGEST = 4 * PATIENCE  # all are to end, however busy the machine is
FAILED_IMPORT = ("cannot import name", "No module named")


def version(folder: Path, name: str) -> Path:
    """The project whose code needs a module that only its own layer has."""
    project = copied(folder)
    (project / WORKFLOWS / f"{name}.py").write_text(f"NAME = {name!r}\n")
    # A slow machine is no reason to give up.
    workflow = project / WORKFLOWS / "order_fulfilment.py"
    replace(workflow, "Retry(max_attempts=3)", "Retry(max_attempts=10)")
    for function in FUNCTIONS:
        path = project / "functions" / function / "app.py"
        needed = f"from workflows.{name} import NAME  # noqa\n"
        replace(path, "from workflows.registry import", f"{needed}from workflows.registry import")
    return project


@pytest.fixture
def stack(session_without_real_aws: None, tmp_path: Path) -> Iterator[DeployedStack]:
    """A stack of its own, since the test leaves another one behind than it found."""
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0,
            services=services.url,
            parameters=PARAMETERS,
            project=version(tmp_path / "one", "one"),
        ) as aws,
    ):
        yield DeployedStack(aws, services)


@contextmanager
def load(stack: DeployedStack) -> Iterator[list[str]]:
    """Orders that are submitted one after the other, all the time; yields their ids so far."""
    sent: list[str] = []
    ended = threading.Event()

    def submit() -> None:
        for number in count():
            stack.submit(order(f"load-{number}"))
            sent.append(f"load-{number}")
            if ended.wait(BETWEEN):
                return

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


def deploy(stack: DeployedStack, project: Path) -> None:
    update.deploy(project, Instances(PROJECT).at(stack.aws.record.port))


def running(stack: DeployedStack) -> dict[str, str]:
    """The version that the alias of each function names."""
    return {
        name: stack.functions.get_alias(FunctionName=function, Name=LIVE)["FunctionVersion"]
        for name, function in stack.aws.outputs.items()
        if name.endswith("FunctionName")
    }


def rollback(stack: DeployedStack) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stack.aws.environment.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        return CliRunner().invoke(
            app, ["rollback", "--stack", stack.aws.stack, "--confirm", stack.aws.stack]
        )


def completed_once(stack: DeployedStack, order_ids: list[str]) -> None:
    stack.wait_for("the end of each order", is_in(stack, "Completed", *order_ids), LONGEST)
    for order_id in order_ids:
        assert effects_of(stack.services, order_id) == ALL_EFFECTS, order_id


def test_a_deployment_under_load_mixes_no_versions_and_goes_back_by_a_command(
    stack: DeployedStack, tmp_path: Path
) -> None:
    first = running(stack)
    with load(stack) as sent:
        stack.wait_for("a completed order", is_in(stack, "Completed", "load-0"), LONGEST)
        deploy(stack, version(tmp_path / "two", "two"))
    completed_once(stack, sent)
    log = stack.aws.log.read_text()
    assert not [line for line in log.splitlines() if any(word in line for word in FAILED_IMPORT)]
    second = running(stack)
    changed = {name for name in first if first[name] != second[name]}
    assert changed >= {name for name in first if not name.startswith(("Scheduler", "Supervisor"))}

    # code that no layer serves: it is deployed, and its steps wait
    broken = version(tmp_path / "three", "three")
    replace(
        broken / "functions" / "agents" / "inventory" / "app.py",
        "from workflows.three import",
        "from workflows.missing import",
    )
    deploy(stack, broken)
    stack.submit(order("waits"))
    stack.wait_for(
        "the failed import", lambda: FAILED_IMPORT[1] in stack.aws.log.read_text(), PATIENCE
    )
    result = rollback(stack)
    assert result.exit_code == 0, result.output
    assert running(stack) == second
    completed_once(stack, ["waits"])
    assert "Every function runs" in rollback(stack).stdout  # repeated, it changes nothing

    # and a corrected version is deployed from there
    deploy(stack, version(tmp_path / "four", "four"))
    third = running(stack)
    assert not {name for name in changed if third[name] == second[name]}
    stack.submit(order("last"))
    completed_once(stack, ["last"])

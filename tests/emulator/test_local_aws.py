"""The local AWS for real: the emulator, `sam build` and `sam deploy`."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roundsman_console.base.process import command_lines, identify
from roundsman_dev.local.emulator import check_port, free_port
from tests.console.schemas import assert_schema
from tests.emulator.conftest import PROJECT, DeployedStack

pytestmark = pytest.mark.stack

LOOPBACK_4 = "0100007F"  # 127.0.0.1 as /proc/net/tcp writes it
LISTENING = "0A"


def roundsman_local(*arguments: str, folder: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from roundsman_dev.local.command import local_app as run; run()",
    ]
    return subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def group_of(leader: int) -> list[int]:
    """The living processes of a group; one that waits for its parent to collect it is dead."""
    pids = [pid for pid, _ in command_lines() if _group(pid) == leader]
    return [pid for pid in pids if identify(pid)]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def sockets_of(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            found.add(target.removeprefix("socket:[").removesuffix("]"))
    return found


def listening_addresses(pids: list[int]) -> list[str]:
    """The address of each TCP socket on which one of these processes listens."""
    if not Path("/proc/net/tcp").exists():
        return listening_addresses_by_lsof(pids)
    inodes = {inode for pid in pids for inode in sockets_of(pid)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                address = fields[1].split(":")[0]
                found.append("127.0.0.1" if address == LOOPBACK_4 else address)
    return found


def listening_addresses_by_lsof(pids: list[int]) -> list[str]:
    named = ",".join(str(pid) for pid in pids)
    command = ["lsof", "-nP", "-a", "-iTCP", "-sTCP:LISTEN", "-p", named, "-Fn"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line[1:].rpartition(":")[0] for line in listed.splitlines() if line.startswith("n")]


def test_the_emulator_and_all_it_starts_listen_on_loopback_only(stack: DeployedStack) -> None:
    stack.submit({"orderId": "of no kind"})
    stack.wait_for("a sandbox to start", lambda: bool(stack.worker_pids("submission")))
    addresses = listening_addresses(group_of(stack.aws.pid))
    assert addresses, "the emulator itself listens"
    assert set(addresses) == {"127.0.0.1"}


def test_the_stack_is_deployed_with_the_parameters_asked_for(stack: DeployedStack) -> None:
    name = stack.output("InventoryFunctionName")
    settings = stack.functions.get_function_configuration(FunctionName=name)
    variables = settings["Environment"]["Variables"]
    assert variables["SERVICE_URL"] == stack.services.url
    assert stack.aws.services == dict.fromkeys(
        ("inventory", "payment", "shipping", "mail"), stack.services.url
    )


def test_the_sandboxes_of_a_function_are_found_and_can_be_killed(stack: DeployedStack) -> None:
    def sandboxes() -> set[int]:
        return set(stack.worker_pids("submission"))

    stack.submit({"orderId": "of no kind"})
    stack.wait_for("a sandbox to start", lambda: bool(sandboxes()))
    first = sandboxes()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    stack.wait_for("the sandboxes to be gone", lambda: not first & sandboxes())
    stack.submit({"orderId": "of no kind"})
    stack.wait_for("another sandbox to start", lambda: bool(sandboxes()))


def test_a_second_one_runs_side_by_side_and_leaves_nothing_behind(stack: DeployedStack) -> None:
    made = roundsman_local("up", "--port", "0", "--services", "http://127.0.0.1:9", "--json")
    assert made.returncode == 0, made.stderr
    described = json.loads(made.stdout)
    port = described["endpoint"].rpartition(":")[2]
    folder = PROJECT / ".cache" / "local" / port
    try:
        assert_schema("local-up", described)
        assert described["outputs"]["SubmissionQueueUrl"].startswith(described["endpoint"])
        assert described["services"]["mail"] == "http://127.0.0.1:9"
        status = roundsman_local("status", "--port", port, "--json")
        assert status.returncode == 0
        [instance] = json.loads(status.stdout)["instances"]
        assert instance["state"] == "healthy"
        pid = instance["pid"]
    finally:
        ended = roundsman_local("down", "--port", port)
    assert ended.returncode == 0
    assert not folder.exists()
    assert group_of(pid) == []
    assert roundsman_local("status", "--port", port).returncode == 3


WRONG_TEMPLATE = """
AWSTemplateFormatVersion: '2010-09-09'
Transform: AWS::Serverless-2016-10-31
Resources:
  Fine: {Type: AWS::SQS::Queue}
  TooLong:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 9999999}
"""


def test_a_failed_deployment_says_what_and_why_and_leaves_only_its_logs(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(WRONG_TEMPLATE)
    for shared in ("requirements", ".cache"):  # so that the emulator is not installed once more
        (tmp_path / shared).symlink_to(PROJECT / shared)
    port = str(free_port())
    failed = roundsman_local("up", "--port", port, folder=tmp_path)
    assert failed.returncode == 1
    sentence = failed.stderr.strip().splitlines()[-1]
    assert sentence.startswith("sam deploy failed: TooLong: ")
    assert "VisibilityTimeout" in sentence
    log = Path(sentence.rpartition("full log: ")[2].rstrip(")"))
    assert "TooLong" in log.read_text()
    assert roundsman_local("status", "--port", port, folder=tmp_path).returncode == 3
    check_port(int(port))  # nothing listens there
    shutil.rmtree(log.parent)

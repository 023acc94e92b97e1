"""Two instances that Lambda restores from one snapshot (SnapStart) do not act alike.

A snapshot is the memory of a function after its imports. Here a process is one: it imports a
function, and each of its forks is an instance that is restored and handles its first event.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from roundsman.aws import snap_start
from tests.unit.aws.test_settings import AGENT, SCHEDULER, SUBMISSION, SUPERVISOR

ROOT = Path(__file__).parents[2]
ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    "submission": SUBMISSION,
    "scheduler": SCHEDULER,
    "supervisor": SUPERVISOR,
    "agents/payment": AGENT,
}
NAMED = ("scheduler", "supervisor")
"""The functions whose instances have names, in claims and in leases."""
RUNTIME = """
hooks = []
def register_after_restore(function, *args, **kwargs):
    hooks.append(lambda: function(*args, **kwargs))
"""
"""What Lambda's own runtimes have as the module snapshot_restore_py."""
SNAPSHOT = """
import gc, json, os, random, secrets, socket, sys, time
import boto3, botocore.client
import snapshot_restore_py

used = []
def watched(module, name):
    real = getattr(module, name)
    def call(*args, **kwargs):
        caller = sys._getframe(1).f_globals["__name__"]
        if caller.partition(".")[0] in ("roundsman", "workflows", "app"):
            used.append(f"{module.__name__}.{name} by {caller}")
        return real(*args, **kwargs)
    setattr(module, name, call)
for name in ("time", "time_ns", "monotonic"):
    watched(time, name)
for name in ("token_bytes", "token_hex"):
    watched(secrets, name)

import app

OF_ONE_INSTANCE = (
    botocore.client.BaseClient, boto3.session.Session, socket.socket, random.Random
)
made = [type(each).__name__ for each in gc.get_objects() if isinstance(each, OF_ONE_INSTANCE)]
seeded = random.getstate()

class Context:
    def get_remaining_time_in_millis(self):
        return 10_000

def first_event(hooks):
    random.setstate(seeded)  # a fork seeds it anew, and a restored snapshot does not
    for hook in hooks:
        hook()
    drawn = random.random()
    if supervisor := sys.modules.get("roundsman.aws.handlers.supervisor"):
        supervisor.keep_passing = lambda *_, **__: None
    app.handler({"Records": []}, Context())
    roles = [each for each in gc.get_objects()
             if type(each).__name__ in ("Scheduler", "SupervisorConfig")]
    return [drawn, *(getattr(each, "_instance", None) or each.instance for each in roles)]

def restored(hooks):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            with open(write, "w") as file:
                json.dump(first_event(hooks), file)
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as file:
        found = json.load(file)
    os.wait()
    return found

hooks = snapshot_restore_py.hooks
instances, without_hooks = ([restored(each), restored(each)] for each in (hooks, []))
print(json.dumps([used, made, instances, without_hooks]))
"""


class Restored(NamedTuple):
    """What a function's imports did, and what instances of it draw and how they are named."""

    function: str
    used: list[str]
    made: list[str]
    instances: list[list[object]]
    without_hooks: list[list[object]]


@pytest.fixture(
    scope="module",
    params=[
        "scheduler",
        pytest.param("submission", marks=pytest.mark.exhaustive),
        pytest.param("supervisor", marks=pytest.mark.exhaustive),
        pytest.param("agents/payment", marks=pytest.mark.exhaustive),
    ],
)
def restored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Restored:
    function: str = request.param
    runtime = tmp_path_factory.mktemp("runtime")
    (runtime / "snapshot_restore_py.py").write_text(RUNTIME)
    paths = [
        runtime,
        ROOT / "layers/core",
        ROOT / "layers/workflows",
        ROOT / "functions" / function,
    ]
    environment = {
        **ENVIRONMENTS[function],
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "SERVICE_URL": "https://service.test",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    ran = subprocess.run(
        [sys.executable, "-c", SNAPSHOT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return Restored(function, *json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.exhaustive
def test_instances_of_one_snapshot_draw_and_are_named_differently(restored: Restored) -> None:
    one, other = restored.instances
    assert len(one) == len(other) == 1 + (restored.function in NAMED)
    assert not set(one) & set(other)


def test_without_the_hook_they_would_draw_alike(restored: Restored) -> None:
    """So the test above would see it if nothing ran after a restore."""
    one, other = restored.without_hooks
    assert one[0] == other[0]


def test_a_snapshot_has_no_client_connection_time_or_name(restored: Restored) -> None:
    assert restored.used == []
    assert sorted(restored.made) == [
        "Random",
        "SystemRandom",
    ]  # of the modules `random` and `secrets`


def test_where_lambda_has_no_such_module_nothing_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snap_start, "RUNTIME_HOOKS", "no_such_module")
    snap_start.seed_after_restore()

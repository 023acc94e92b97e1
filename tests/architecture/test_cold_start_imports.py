"""What each function imports at its start is counted: each module lengthens every cold start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMITS = {"submission": 98, "scheduler": 132, "supervisor": 128, "agents/mail": 97}
"""The most modules of ours that each function may import: as many as there are. A module takes less
than half a millisecond."""
LIBRARIES = {"submission": 42, "scheduler": 42, "supervisor": 42, "agents/mail": 66}
"""The most other modules, besides those of boto3 and its two clients."""
NEVER = {
    "asyncio",  # 40 modules, for one class of a library
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.data_classes",
    "aws_lambda_powertools.utilities.parser",
    "pydantic",  # only an application whose own code imports it ships it
    "pydantic_core",
    "roundsman.definition.models",
    "roundsman.aws.xray",
    "roundsman.client",
    "roundsman_console.inspector",
    "roundsman_testing",
    "roundsman_console",
    "typing_extensions",
}
STARTS = """
import json, os, sys
import boto3
boto3.client("sqs", region_name="us-east-1"), boto3.client("dynamodb", region_name="us-east-1")
before = set(sys.modules)
found = {}
for name in sys.argv[1:]:
    read, write = os.pipe()
    if os.fork() == 0:  # each function in a process of its own, and boto3 imported once
        sys.path.insert(0, os.path.join("functions", name))
        import app
        modules = sorted(set(sys.modules) - before)
        with open(write, "w") as file:
            json.dump(modules, file)
        os._exit(0)
    os.close(write)
    with open(read) as file:
        found[name] = json.load(file)
    os.wait()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def started() -> dict[str, list[str]]:
    """The modules that each function has imported before its first event, besides boto3's."""
    ran = subprocess.run(
        [sys.executable, "-c", STARTS, *LIMITS],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'layers/core'}:{ROOT / 'layers/workflows'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("function", LIMITS)
def test_no_function_imports_more_than_it_did(function: str, started: dict[str, list[str]]) -> None:
    ours = [each for each in started[function] if each.split(".")[0] in ("roundsman", "workflows")]
    others = [each for each in started[function] if each not in ours and each != "app"]
    assert len(ours) <= LIMITS[function], f"{len(ours)} modules: import late what is needed rarely"
    assert len(others) <= LIBRARIES[function], f"{len(others)} modules of libraries: {others}"


@pytest.mark.parametrize("function", LIMITS)
def test_no_function_imports_what_only_others_need(
    function: str, started: dict[str, list[str]]
) -> None:
    packages = {
        ".".join(parts[:depth])
        for parts in (each.split(".") for each in started[function])
        for depth in range(1, len(parts) + 1)
    }
    assert not packages & NEVER

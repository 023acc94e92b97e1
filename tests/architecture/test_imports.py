"""Imports point one way: functions, adapters, core. The engine knows no application."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core" / "roundsman"
TESTING = ROOT / "testing" / "roundsman_testing"
ENGINE = [CORE, ROOT / "functions" / "scheduler", ROOT / "functions" / "supervisor"]
# What runs a template in a test: it alone has AWS's own libraries and moto.
STACK_KIT = {"aws_lambda_powertools", "boto3", "botocore", "moto", "samtranslator", "yaml"}


@cache
def imported(path: Path) -> tuple[str, ...]:
    """The modules that a file imports, wherever in it, but for those of types only."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: name the module from the top"
            yield str(node.module)


ADAPTERS = CORE / "aws"
PURE = sorted(
    path
    for path in CORE.rglob("*.py")
    if ADAPTERS not in path.parents and path != CORE / "client.py"
)
"""What neither touches AWS nor stays off Lambda."""


def name_of(path: Path) -> str:
    return str(path.relative_to(CORE if CORE in path.parents else TESTING))


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_the_core_imports_the_standard_library_and_jmespath_only(path: Path) -> None:
    known = {*sys.stdlib_module_names, "jmespath", "roundsman"}
    if name_of(path) == "agents/attempt.py":
        known.add("tenacity")
    if name_of(path) == "definition/models.py":  # imported for an application's pydantic models
        known |= {"pydantic", "pydantic_core"}
    assert {name.partition(".")[0] for name in imported(path)} <= known


OF_AGENTS = {
    "tenacity",
    "roundsman.agents.agent",
    "roundsman.agents.attempt",
    "roundsman.aws.guard.breaker",
}
OF_POWERTOOLS = {
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.data_classes",
    "asyncio",  # by its batch processor
}
OF_ORDERS = {"workflows", "roundsman.definition.input_types", "roundsman.submission.events"}
SPARED = {
    "submission": {
        *OF_AGENTS,
        *OF_POWERTOOLS,
        "roundsman.engine.machine",
        "roundsman.supervisor.supervisor",
    },
    "scheduler": {*OF_AGENTS, *OF_POWERTOOLS, *OF_ORDERS, "roundsman.supervisor.supervisor"},
    "supervisor": {*OF_AGENTS, *OF_POWERTOOLS, *OF_ORDERS},
    "agents.mail": {
        "roundsman.engine.machine",
        "roundsman.aws.handlers.wiring",
        "roundsman.submission.events",
    },
}
"""What a function does not import, for the sake of its start."""


@pytest.mark.parametrize(
    "function",
    [
        "scheduler",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in sorted({*SPARED} - {"scheduler"})
        ),
    ],
)
def test_a_function_imports_nothing_heavy_that_only_others_need(function: str) -> None:
    code = f"import sys, functions.{function}.app; print(*{SPARED[function]} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.split() == []


def test_the_core_knows_one_adapter_only_so_that_an_author_can_name_a_handler() -> None:
    found = {
        (name_of(path), name)
        for path in PURE
        for name in imported(path)
        if name.startswith("roundsman.aws")
    }
    assert found == {("agents/agent.py", "roundsman.aws.handlers.agent")}


def test_neither_the_engine_nor_its_functions_import_a_workflow_or_the_command_line() -> None:
    files = [path for folder in ENGINE for path in folder.rglob("*.py")]
    assert len(files) > len(PURE)
    for path in files:
        heads = {name.partition(".")[0] for name in imported(path)}
        assert not heads & {"workflows", "roundsman_console", "roundsman_dev"}, path


def test_what_runs_on_lambda_imports_neither_the_test_kit_nor_the_console() -> None:
    folders = (CORE, ROOT / "layers" / "workflows", ROOT / "functions")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    for path in files:
        absent = ("roundsman_testing", "roundsman_console", "roundsman_dev")
        assert not [name for name in imported(path) if name.startswith(absent)], path


@pytest.mark.parametrize("path", sorted(TESTING.rglob("*.py")), ids=name_of)
def test_of_the_test_kit_only_what_stands_for_aws_knows_aws_and_only_the_plugin_knows_pytest(
    path: Path,
) -> None:
    known = {*sys.stdlib_module_names, "jmespath", "roundsman", "roundsman_testing"}
    if path.parent.name == "stack":
        known |= {*STACK_KIT, "roundsman_dev"}  # it reads templates
    if path.parent.name == "dynamodb":
        known.add("botocore")  # a call to its tables raises what a client raises
    if path.name == "aws.py":
        known |= {"boto3", "botocore"}  # the clients of a process that uses a world
    if path.parent.name == "first_look":
        known.add("roundsman_console")  # it shows a world in the console
    if path.name in ("guards.py", "powertools.py"):
        known.add("aws_lambda_powertools")  # the circuit breaker that an agent has
    if path.name == "plugin.py":
        known |= {"pytest", "roundsman_dev"}  # the fixture roundsman_check
    others = [name for name in imported(path) if name not in JUDGES]
    assert {name.partition(".")[0] for name in others} <= known


AUDIT = ROOT / "console" / "roundsman_console" / "facts" / "audit"
JUDGES = {
    "roundsman_console.facts.audit",
    "roundsman_console.facts.audit.checks",
    "roundsman_console.facts.audit.effect_checks",
    "roundsman_console.facts.audit.history_checks",
    "roundsman_console.facts.audit.needs",
    "roundsman_console.facts.audit.promises",
    "roundsman_console.facts.audit.record_checks",
    "roundsman_console.facts.audit.stored_order",
}
"""The promises and their checks, which belong to `roundsman audit` and which the test kit uses."""


@pytest.mark.parametrize("name", sorted(JUDGES - {"roundsman_console.facts.audit"}))
def test_the_checks_that_the_test_kit_uses_know_neither_aws_nor_the_rest_of_the_console(
    name: str,
) -> None:
    found = [one for one in imported(AUDIT / f"{name.rpartition('.')[2]}.py") if one not in JUDGES]
    assert {one.partition(".")[0] for one in found} <= {*sys.stdlib_module_names, "roundsman"}
    assert not [one for one in found if one.startswith("roundsman.aws")]


def test_pytest_starts_without_what_only_the_fixtures_need() -> None:
    heavy = {
        *STACK_KIT,
        "jmespath",
        "tenacity",
        "roundsman.definition.workflow",
        "roundsman_testing.world.world",
    }
    code = f"import sys, roundsman_testing.plugin; print(*{heavy} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert loaded.stdout.split() == []


def test_only_an_agents_function_pays_for_the_import_of_the_circuit_breaker() -> None:
    of_breakers = {f"roundsman.aws.guard.{path.stem}" for path in (ADAPTERS / "guard").glob("*.py")}
    importing = {
        str(path.relative_to(ADAPTERS))
        for path in ADAPTERS.rglob("*.py")
        for name in imported(path)
        if "circuit_breaker" in name or name in of_breakers
    }
    assert importing == {
        "guard/breaker.py",
        "guard/circuit_events.py",
        "guard/guard.py",
        "guard/tenant_rate.py",
        "handlers/agent.py",
    }

"""On Lambda a function starts without the garbage collector, and runs with it."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.aws import cold_start

ROOT = Path(__file__).parents[3]
ON_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does to this process's collector is taken back."""
    monkeypatch.delenv(ON_LAMBDA, raising=False)
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_is_off_until_the_function_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ON_LAMBDA, "scheduler")
    cold_start.begin()
    seen = cold_start.ends_the_start(gc.isenabled)()
    assert not seen
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_it_is_on_again_where_the_function_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ON_LAMBDA, "scheduler")
    cold_start.begin()
    with pytest.raises(ZeroDivisionError):
        cold_start.ends_the_start(lambda: 1 / 0)()
    assert gc.isenabled()


def test_elsewhere_the_collector_is_left_alone() -> None:
    cold_start.begin()
    assert cold_start.ends_the_start(gc.isenabled)()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    "function", ["scheduler", pytest.param("agents.mail", marks=pytest.mark.exhaustive)]
)
def test_it_is_off_before_a_function_imports_anything_of_aws(function: str) -> None:
    code = f"""
import builtins, gc
real, seen = builtins.__import__, set()
def watched(name, *rest):
    seen.add((name.partition(".")[0], gc.isenabled()))
    return real(name, *rest)
builtins.__import__ = watched
import functions.{function}.app
print(*(name for name in ("boto3", "aws_lambda_powertools") if (name, True) in seen))
print(gc.isenabled())
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, ON_LAMBDA: function},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == ["False"]

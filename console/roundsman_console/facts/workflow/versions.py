"""How each step did with each version of its agents' functions, from the logs. Pure.

No metric has the version of a function: each metric more is paid for with every order. The name of
a log stream has it, so the logs are asked, when somebody asks.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman_console.base.constraints import Count
from roundsman_console.base.result import BYTES, MS, USD, EpochMs, Result, Shown
from roundsman_console.facts.workflow.health import SHARE, share_of

QUESTION = """\
filter message = "attempted" and not ispresent(operation)
| parse @logStream "[*]" as version
| stats count(*) as attempts, pct(took_ms, 50) as half, pct(took_ms, 99) as most
  by @log, step, version, outcome"""
"""A line of an attempt that succeeded has no `outcome`."""
FAILED = ("transient", "permanent")
"""The outcomes of attempts that failed. Others are those that did not end: held, waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOfVersion:
    """How a step did with one version of an agent's function."""

    step: str
    agent: str
    version: str
    """The version of the function."""
    attempts: Count
    failed_share: Annotated[float | None, Shown("Failed", SHARE)]
    """The share of the attempts that failed; null if there was none."""
    half: Annotated[int | None, Shown("Half within", MS)]
    """Half of the attempts that succeeded took no longer in the agent; null if none did."""
    nearly_all: Annotated[int | None, Shown("99 % within", MS)]
    """99 of 100 took no longer; null if none did."""


@dataclass(frozen=True, slots=True)
class AgentVersions(Result):
    """How the steps of a workflow did with each version of their agents."""

    workflow: str
    since: EpochMs
    until: EpochMs
    scanned: Annotated[int, Shown(name="scannedBytes", unit=BYTES)]
    """How much of the logs was scanned."""
    cost: Annotated[float, Shown(name="usd", unit=USD)]
    """What AWS charges for that at its list price, in USD."""
    versions: Sequence[StepOfVersion]
    """In the order of the workflow, and of the versions; empty if the logs have no attempt."""


def by_version(rows: Sequence[Mapping[str, str]], steps: Collection[str]) -> list[StepOfVersion]:
    """Return how these steps did, from the rows that answer QUESTION."""
    order = [*steps]
    counted: dict[tuple[str, str, str], dict[str, Mapping[str, str]]] = {}
    for row in rows:
        step, agent = row.get("step", ""), row.get("@log", "").rpartition("/")[2]
        if step in steps:
            key = (step, agent, row.get("version", ""))
            counted.setdefault(key, {})[row.get("outcome", "")] = row
    found = [*_each(counted)]
    return sorted(found, key=lambda one: (order.index(one.step), one.agent, _number(one.version)))


def _each(
    counted: Mapping[tuple[str, str, str], Mapping[str, Mapping[str, str]]],
) -> Iterator[StepOfVersion]:
    for (step, agent, version), outcomes in counted.items():
        succeeded = outcomes.get("", {})
        failed = sum(_count(outcomes.get(outcome, {})) for outcome in FAILED)
        attempts = _count(succeeded) + failed
        if attempts:
            yield StepOfVersion(
                step=step,
                agent=agent,
                version=version or "not known",
                attempts=attempts,
                failed_share=share_of(attempts, failed),
                half=_time(succeeded, "half"),
                nearly_all=_time(succeeded, "most"),
            )


def _count(row: Mapping[str, str]) -> int:
    return round(float(row.get("attempts", "0")))


def _time(row: Mapping[str, str], name: str) -> int | None:
    return round(float(row[name])) if name in row else None


def _number(version: str) -> tuple[int, str]:
    """The place of a version: numbers in their order, before names such as $LATEST."""
    return (int(version), "") if version.isascii() and version.isdecimal() else (10**9, version)

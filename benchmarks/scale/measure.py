"""Makes the tables of `python -m benchmarks scale`: settings for 1 to 10,000 orders per second."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from benchmarks.report import Report, Setting, Table
from benchmarks.scale.plan import (
    PROFILES,
    Limit,
    Measured,
    Needs,
    Profile,
    limits,
    needs_of,
    seconds_to_recover,
    setting,
)
from benchmarks.scale.quotas import load_quotas
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.prices import load_prices
from roundsman_dev.template import Template, mapping_of, part

ROOT = Path(__file__).parents[2]
OVERDUE = (100, 1_000, 10_000, 100_000)
SUPERVISORS = (
    ("as it comes: 256 MB, 90 s, 16 shards", 256, 90, 16),
    ("1,769 MB, 90 s, 16 shards", 1769, 90, 16),
    ("1,769 MB, 900 s, 16 shards", 1769, 900, 16),
    ("1,769 MB, 900 s, 64 shards", 1769, 900, 64),
)


def measure(setting_of_run: Setting) -> Report:
    """Return the plan and the limits."""
    setting_of_run.say("the plan")
    measured = _measured()
    found = [(profile, needs_of(profile, measured)) for profile in PROFILES]
    reached = limits(measured, 10, max(concurrencies()))
    return Report(
        [_to_set(found), _to_ask(found), _breaks(reached), _recovered()],
        [
            *(f"{each.name}: {each.turn}." for each in reached),
            f"Quotas of {measured.quotas.dated}, list prices of {measured.prices.dated}.",
        ],
    )


def _measured() -> Measured:
    return Measured(load_figures(), load_prices(), load_quotas())


def concurrencies() -> list[int]:
    """Return the values that the template allows for `SchedulerConcurrency`."""
    document = Template.read(ROOT / "stacks" / "engine.yaml").document
    allowed = mapping_of(part(document, "Parameters")["SchedulerConcurrency"])["AllowedValues"]
    return [int(str(value)) for value in allowed] if isinstance(allowed, list) else []


def _to_set(found: Sequence[tuple[Profile, Needs]]) -> Table:
    allowed = concurrencies()

    def chosen(need: float) -> str:
        value = setting(need, allowed)
        return "-" if value is None else f"{max(10, value)}"

    rows = [
        [
            f"{profile.rate:,.0f}",
            f"{profile.stacks}",
            f"{needs.shards}",
            *(chosen(needs.instances[role]) for role in ("submission", "scheduler", "agent")),
            f"{profile.batch:g}",
            f"{profile.memory}",
            f"{profile.supervisor_memory}",
            f"{profile.supervisor_timeout}",
        ]
        for profile, needs in found
    ]
    headings = (
        "orders a second", "stacks", "DueShards", "Submission*", "Scheduler*", "<Agent>*",
        "batch", "*Memory", "SupervisorMemory", "SupervisorTimeoutSeconds",
    )  # fmt: skip
    return Table("What to set (* Concurrency, of each stack)", headings, rows)


def _to_ask(found: Sequence[tuple[Profile, Needs]]) -> Table:
    rows = [
        [
            f"{profile.rate:,.0f}",
            f"{needs.at_once * profile.stacks:,.0f}",
            _raised(2 * needs.at_once * profile.stacks, load_quotas()["concurrency"]),
            f"{needs.table_writes:,.0f}",
            f"{needs.index_writes:,.0f}",
            _warm(needs),
            f"{needs.in_flight:,.0f}",
            f"{needs.usd:,.0f}",
        ]
        for profile, needs in found
    ]
    headings = (
        "orders a second", "instances", "ask for", "TasksTable/s", "due index/s", "pre-warm",
        "in flight", "USD a month",
    )  # fmt: skip
    return Table("What to ask AWS for first, and what it costs", headings, rows)


def _raised(need: float, quota: int) -> str:
    return "-" if need <= quota else f"{-(-need // 1_000) * 1_000:,.0f}"


def _warm(needs: Needs) -> str:
    most = max(needs.table_writes, needs.index_writes)
    return "-" if 2 * most <= load_quotas()["new_table_writes"] else f"{2 * most:,.0f}"


def _breaks(found: Sequence[Limit]) -> Table:
    rows = [[each.name, f"{each.as_it_comes:,.0f}", _most(each.at_most)] for each in found]
    headings = ("what", "as it comes", "at its most")
    return Table("What is met first, in orders a second of one stack", headings, rows)


def _most(rate: float) -> str:
    return "-" if rate == inf else f"{rate:,.0f}"


def _recovered() -> Table:
    measured, rows = _measured(), list[list[str]]()
    for name, memory, timeout, shards in SUPERVISORS:
        step_ms = measured.overdue_step_ms(memory)
        took = (seconds_to_recover(number, step_ms, timeout, shards) for number in OVERDUE)
        rows.append([name, f"{step_ms:.0f}", *(f"{seconds:,.0f} s" for seconds in took)])
    headings = ("overdue at once", "ms a step", *(f"{number:,}" for number in OVERDUE))
    return Table("Until the last of so many overdue steps is brought back", headings, rows)

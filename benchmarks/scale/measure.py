"""Makes the tables of `python -m benchmarks scale`: settings for 1 to 10,000 orders per second."""

from collections.abc import Sequence
from math import inf

from benchmarks.report import Report, Setting, Table
from benchmarks.scale.lanes import half_let_through, let_through
from benchmarks.scale.plan import (
    PROFILES,
    Limit,
    Needs,
    Profile,
    limits,
    load_measured,
    needs_of,
    seconds_to_recover,
    setting,
)
from benchmarks.scale.quotas import load_quotas
from benchmarks.scale.simulated import load_simulated
from benchmarks.scale.simulation import DUE, ORDERS
from benchmarks.scale.stacks import concurrencies, warmth
from roundsman_console.facts.cost.model import SUPERVISOR_MEMORY

OVERDUE = (100, 1_000, 10_000, 100_000)
SHARDS_AND_UNITS = (
    (16, 4_000), (64, 4_000), (16, 14_000), (64, 14_000), (64, 42_000), (128, 42_000),
    (128, 80_000),
)  # fmt: skip
SUPERVISORS = (
    (f"as it comes: {SUPERVISOR_MEMORY} MB, 90 s, 16 shards", SUPERVISOR_MEMORY, 90, 16),
    ("1,769 MB, 90 s, 16 shards", 1769, 90, 16),
    ("1,769 MB, 900 s, 16 shards", 1769, 900, 16),
    ("1,769 MB, 900 s, 64 shards", 1769, 900, 64),
)


def measure(setting_of_run: Setting) -> Report:
    """Return the plan and the limits."""
    setting_of_run.say("the plan")
    measured = load_measured()
    found = [(profile, needs_of(profile, measured)) for profile in PROFILES]
    reached = limits(measured)
    return Report(
        [_to_set(found), _to_ask(found), _breaks(reached), _lanes(), _recovered()],
        [
            *(f"{each.name}: {each.turn}." for each in reached),
            f"Quotas of {measured.quotas.dated}, list prices of {measured.prices.dated}.",
        ],
    )


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
            _warm(needs, DUE),
            f"{needs.order_writes:,.0f}",
            _warm(needs, ORDERS),
            f"{needs.in_flight:,.0f}",
            f"{needs.usd:,.0f}",
        ]
        for profile, needs in found
    ]
    headings = (
        "orders a second", "instances", "ask for", "TasksTable/s", "due index/s", "pre-warm",
        "OrdersTable/s", "pre-warm it", "in flight", "USD a month",
    )  # fmt: skip
    return Table("What to ask AWS for first, and what it costs", headings, rows)


def _raised(need: float, quota: int) -> str:
    return "-" if need <= quota else f"{-(-need // 1_000) * 1_000:,.0f}"


def _warm(needs: Needs, table: str) -> str:
    units = warmth(needs, load_measured())[table]
    return "-" if units <= load_quotas()["new_table_writes"] else f"{units:,.0f}"


def _breaks(found: Sequence[Limit]) -> Table:
    carried = load_simulated().carried
    rows = [
        [
            each.name,
            f"{each.as_it_comes:,.0f}",
            f"{carried[each.id]:,.0f}" if each.known == "simulated" else "-",
            _most(each.at_most),
            each.known,
        ]
        for each in found
    ]
    headings = ("what", "as it comes", "simulated", "at its most", "known by")
    return Table("What is met first, in orders a second of one stack", headings, rows)


def _lanes() -> Table:
    one = load_quotas()["partition_writes"]

    def row(shards: int, units: int) -> list[str]:
        rates = [find(shards, units // one, one) for find in (let_through, half_let_through)]
        return [f"{shards} shards, warm for {units:,} units", *(f"{rate:,.0f}" for rate in rates)]

    rows = [row(*each) for each in SHARDS_AND_UNITS]
    headings = ("due index", "99 of 100 draws", "half of the draws")
    return Table("What its lanes let through at least, in orders a second", headings, rows)


def _most(rate: float) -> str:
    return "-" if rate == inf else f"{rate:,.0f}"


def _recovered() -> Table:
    measured, rows = load_measured(), list[list[str]]()
    for name, memory, timeout, shards in SUPERVISORS:
        step_ms = measured.overdue_step_ms(memory)
        took = (seconds_to_recover(number, step_ms, timeout, shards) for number in OVERDUE)
        rows.append([name, f"{step_ms:.0f}", *(f"{seconds:,.0f} s" for seconds in took)])
    headings = ("overdue at once", "ms a step", *(f"{number:,}" for number in OVERDUE))
    return Table("Until the last of so many overdue steps is brought back", headings, rows)

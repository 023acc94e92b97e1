"""Makes the tables of `python -m benchmarks scale`: settings for 1 to 10,000 orders per second."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from benchmarks.report import Report, Setting, Table, amount
from benchmarks.scale.arrivals import lot
from benchmarks.scale.plan import (
    PROFILES,
    Limit,
    Measured,
    Needs,
    Profile,
    limits,
    needs_of,
    setting,
)
from benchmarks.scale.quotas import load_quotas
from benchmarks.scale.rounds import HELD_AGAIN, Held, Lost, Settings, Stage
from roundsman.engine.agent_holds import RECHECK_INTERVAL
from roundsman.engine.due import START_WITHIN
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.testing.stack.template import Template, mapping_of, part
from roundsman_console.cost.figures import load_figures
from roundsman_console.cost.prices import load_prices

ROOT = Path(__file__).parents[2]
LATEST = ROOT / "benchmarks" / "results" / "latest.json"
OUTAGE = (10, 20)  # start and end of the outage of a service, in minutes
OUTAGE_MINUTES = 40
LOST_OF = 1_000  # one of this number of orders loses a message
OVERDUE = (100, 1_000, 10_000, 100_000)
AT_MOST = 240  # the limit of the simulated time, in minutes

HELD = (("", HELD_AGAIN), (", on hold by a person", RECHECK_INTERVAL))
SUPERVISORS = (
    ("as it comes: 256 MB, 90 s, 16 shards", 256, 90, 16),
    ("1,769 MB, 90 s, 16 shards", 1769, 90, 16),
    ("1,769 MB, 900 s, 16 shards", 1769, 900, 16),
    ("1,769 MB, 900 s, 64 shards", 1769, 900, 64),
)


def measure(setting_of_run: Setting) -> Report:
    """Return the plan and the simulations on which it is based."""
    say = setting_of_run.say
    measured = Measured(load_figures(), load_prices(), load_quotas())
    own_ms = own_ms_of_a_request()
    say("supervisors, much overdue at once")
    behind, behind_found = _behind(measured, own_ms)
    say("supervisors, a service that is down")
    outage, outage_found = _outage(measured, own_ms)
    found = [(profile, needs_of(profile, measured)) for profile in PROFILES]
    reached = _limits(measured, own_ms)
    return Report(
        [_to_set(found), _to_ask(found), _breaks(reached), behind, outage],
        {
            "scale": {
                "quotas_dated": measured.quotas.dated,
                "overdue_recovered_in_seconds": behind_found,
                "late_seconds_around_an_outage": outage_found,
                "plan": {
                    str(round(profile.rate)): {
                        "instances": round(needs.at_once * profile.stacks),
                        "usd_per_month": round(needs.usd),
                    }
                    for profile, needs in found
                },
            }
        },
        [
            *(f"{each.name}: {each.turn}." for each in reached),
            f"Quotas of {measured.quotas.dated}, list prices of {measured.prices.dated}, "
            f"{own_ms:.2f} ms of a processor for a supervisor's request as measured.",
        ],
    )


def own_ms_of_a_request() -> float:
    """Return the latest measured processor time in ms of one request of a supervisor's pass."""
    found = json.loads(LATEST.read_text(encoding="utf-8"))["supervisor_pass"]["1000"]
    return float(found["processor_ms"]) / float(found["requests"])


def concurrencies() -> list[int]:
    """Return the values that the template allows for `SchedulerConcurrency`."""
    document = Template.read(ROOT / "stacks" / "engine.yaml").document
    allowed = mapping_of(part(document, "Parameters")["SchedulerConcurrency"])["AllowedValues"]
    return [int(str(value)) for value in allowed] if isinstance(allowed, list) else []


# ---- the plan ---------------------------------------------------------------------------------


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


def _limits(measured: Measured, own_ms: float) -> list[Limit]:
    costs = _settings(measured, own_ms, 256, 90, 16)
    return limits(measured, 10, max(concurrencies()), costs.takes(sqs=1))


def _breaks(found: Sequence[Limit]) -> Table:
    rows = [[each.name, f"{each.as_it_comes:,.0f}", _most(each.at_most)] for each in found]
    headings = ("what", "as it comes", "at its most")
    return Table("What is met first, in orders a second of one stack", headings, rows)


def _most(rate: float) -> str:
    return "-" if rate == inf else f"{rate:,.0f}"


# ---- supervisors ------------------------------------------------------------------------------


def _settings(
    measured: Measured, own_ms: float, memory: int, timeout: int, shards: int
) -> Settings:
    assumed = measured.prices.assumed
    share = min(1.0, memory / assumed.processor_mb)
    return Settings(shards, timeout * SECOND, own_ms / share, assumed.dynamodb_ms, assumed.sqs_ms)


def _behind(measured: Measured, own_ms: float) -> tuple[Table, dict[str, Json]]:
    rows: list[list[str]] = []
    document: dict[str, Json] = {}
    for name, *parameters in SUPERVISORS:
        settings = _settings(measured, own_ms, *parameters)
        took: list[float] = []
        for number in OVERDUE:
            lost = [Lost(f"ord-{each:06d}", 0) for each in range(number)]
            ran = Stage(settings, lost).run(AT_MOST)
            took.append(inf if ran.left else ran.last_at / SECOND)
        rows.append([name, *(f"{seconds:,.0f} s" for seconds in took)])
        document[name] = [round(seconds) for seconds in took]
    headings = ("overdue at once", *(f"{number:,}" for number in OVERDUE))
    return Table(
        "Until the last of so many overdue steps is brought back", headings, rows
    ), document


def entries_of(rate: float) -> Iterator[Lost | Held]:
    """Yield the orders that an outage delays, and one lost step for each LOST_OF orders."""
    drawn = lot(3)
    down, up = (minute * MINUTE for minute in OUTAGE)
    for number in range(round(rate * (up - down) / SECOND)):
        born = down + drawn.random() * (up - down)
        # After the outage, the held orders continue at the rate of new ones; the capacity is twice
        # that rate.
        gone_at = round(up + drawn.random() * (up - down))
        yield Held(f"held-{number:07d}", round(born + START_WITHIN), gone_at)
    for number in range(round(rate * OUTAGE_MINUTES * 60 / LOST_OF)):
        at = drawn.random() * (OUTAGE_MINUTES - 2) * MINUTE
        yield Lost(f"lost-{number:07d}", round(at + START_WITHIN))


def _outage(measured: Measured, own_ms: float) -> tuple[Table, dict[str, Json]]:
    rows: list[list[str]] = []
    document: dict[str, Json] = {}
    cases = [
        (rate, name + how, again, parameters)
        for rate in (10, 100, 1_000)
        for name, *parameters in (SUPERVISORS[0], SUPERVISORS[-1])
        for how, again in (HELD if parameters[0] > SUPERVISORS[0][1] else HELD[:1])
    ]
    for rate, name, again, parameters in cases:
        settings = replace(_settings(measured, own_ms, *parameters), held_again=again)
        ran = Stage(settings, entries_of(rate), healthy=rate).run(OUTAGE_MINUTES)
        down, up = (minute * MINUTE for minute in OUTAGE)
        times = ((0, down), (down, up), (up, 2 * up - down), (2 * up - down, AT_MOST * MINUTE))
        late = [_late(ran.between(since, until)) for since, until in times]
        rows.append([f"{rate:,} a second, {name}", *late, f"{ran.most_at_once}"])
        document[f"{rate}, {name}"] = [*late]
    headings = ("", "before", "while down", "10 minutes after", "then", "supervisors at once")
    title = (
        "How late lost steps are brought back around a service's outage of ten minutes: half of "
        "them, 99 of 100"
    )
    return Table(title, headings, rows), document


def _late(found: Sequence[int]) -> str:
    if not found:
        return "none lost"
    middle, most = found[len(found) // 2], found[int(len(found) * 0.99)]
    return f"{amount(round(middle / SECOND))} s, {amount(round(most / SECOND))} s"

"""The plan of the page on scale, and the simulation of its supervisors."""

import pytest

from benchmarks.scale.arrivals import lot, poisson
from benchmarks.scale.measure import concurrencies
from benchmarks.scale.plan import (
    PROFILES,
    TIMEOUT,
    Measured,
    Profile,
    needs_of,
    setting,
    shards_for,
)
from benchmarks.scale.quotas import load_quotas
from benchmarks.scale.rounds import Held, Lost, Settings, Stage
from roundsman.model.instants import MINUTE, SECOND
from roundsman.supervisor.shard_leases import shards_at_once
from roundsman_console.cost.figures import load_figures
from roundsman_console.cost.prices import load_prices

MEASURED = Measured(load_figures(), load_prices(), load_quotas())


def test_as_many_come_as_should_on_average() -> None:
    for mean in (0.3, 8.0, 400.0):
        drawn = lot(3)
        found = [poisson(mean, drawn) for _ in range(2_000)]
        assert sum(found) / len(found) == pytest.approx(mean, rel=0.08)


# ---- supervisors --------------------------------------------------------------------------------

QUICK = Settings(shards=16, timeout=90 * SECOND, own_ms=2.0, dynamodb_ms=5.0, sqs_ms=10.0)


def overdue(number: int) -> list[Lost | Held]:
    return [Lost(f"ord-{each:05d}", 0) for each in range(number)]


def test_everything_that_is_overdue_is_brought_back_and_in_the_time_that_its_requests_take() -> (
    None
):
    ran = Stage(QUICK, overdue(500)).run(5)
    assert ran.left == 0
    assert ran.looked_at == 500
    each = 3 * 2.0 + 2 * 5.0 + 10.0
    assert ran.last_at == pytest.approx(500 * each, rel=0.1)


def test_what_one_pass_does_not_reach_the_next_ones_do() -> None:
    ran = Stage(QUICK, overdue(8_000)).run(5)
    assert ran.left == 0
    assert ran.last_at > 90 * SECOND
    assert len(ran.between(0, 1)) == 8_000, "each once"


def test_supervisors_that_run_longer_help_each_other_as_far_as_there_are_shards() -> None:
    def last_at(timeout: int, shards: int) -> int:
        settings = Settings(shards, timeout * SECOND, QUICK.own_ms, 5.0, 10.0)
        return Stage(settings, overdue(40_000)).run(60).last_at

    alone, four, sixteen = last_at(90, 16), last_at(900, 16), last_at(900, 64)
    assert alone > 1.5 * four > 1.5 * sixteen


def test_what_falls_due_is_looked_at_a_second_late_at_most_as_long_as_there_is_time() -> None:
    entries = [Lost(f"ord-{each}", 2 * MINUTE + each * SECOND) for each in range(100)]
    ran = Stage(QUICK, entries).run(6)
    assert ran.left == 0
    assert max(ran.between(0, 10 * MINUTE)) <= 2 * SECOND


def test_what_is_held_keeps_supervisors_busy_until_it_is_gone() -> None:
    held = [Held(f"held-{each:05d}", 0, 10 * MINUTE) for each in range(3_000)]
    lost = [Lost("lost", 2 * MINUTE)]
    ran = Stage(QUICK, [*held, *lost]).run(15)
    assert ran.left == 0
    assert ran.looked_at > 2 * len(held), "again and again"
    assert ran.looked_at == Stage(QUICK, [*held, *lost]).run(20).looked_at, "and then no more"


# ---- the plan -----------------------------------------------------------------------------------


def test_instances_are_messages_a_second_by_the_seconds_of_each() -> None:
    needs = needs_of(Profile(100), MEASURED)
    agent = MEASURED.seconds("agent", 256, 1)
    assert agent > 0.1, "its service alone takes 100 ms"
    assert needs.instances["agent"] == pytest.approx(100 * agent)
    each = needs.instances
    assert needs.at_once == pytest.approx(
        each["submission"] + 5 * each["scheduler"] + 4 * each["agent"]
    )


def test_no_lane_of_the_plan_is_more_than_half_full() -> None:
    for profile in PROFILES:
        needs = needs_of(profile, MEASURED)
        assert 3 * profile.each / needs.shards <= 500
        assert shards_for(profile.each, load_quotas()) <= needs.shards <= 128
        helped = profile.supervisor_timeout > TIMEOUT
        assert shards_at_once(needs.shards) * (16 if helped else 4) <= needs.shards, "hands enough"


def test_every_concurrency_of_the_plan_is_one_that_the_template_allows() -> None:
    allowed = concurrencies()
    assert max(allowed) == load_quotas()["mapping_concurrency"]
    for profile in PROFILES:
        needs = needs_of(profile, MEASURED)
        chosen = [setting(need, allowed) for need in needs.instances.values()]
        assert all(chosen), f"{profile.rate:,.0f} orders a second do not fit into its stacks"


def test_one_stack_does_not_carry_ten_thousand_orders_a_second() -> None:
    needs = needs_of(Profile(10_000, batch=5, memory=512), MEASURED)
    assert setting(needs.instances["agent"], concurrencies()) is None
    assert needs.table_writes > load_quotas()["table_writes"]


def test_stacks_side_by_side_cost_what_one_would_and_what_stands_there_besides() -> None:
    one, four = (needs_of(Profile(400, stacks, batch=5), MEASURED) for stacks in (1, 4))
    assert 0 < four.usd - one.usd < 200

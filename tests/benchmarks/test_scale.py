"""The plan of the page on scale."""

import pytest

from benchmarks.scale.plan import (
    PROFILES,
    TIMEOUT,
    Measured,
    Profile,
    needs_of,
    seconds_to_recover,
    setting,
    shards_for,
)
from benchmarks.scale.quotas import load_quotas
from benchmarks.scale.stacks import concurrencies
from roundsman.supervisor.shard_leases import shards_at_once
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.model import DEFAULT_MEMORY
from roundsman_console.facts.cost.prices import load_prices

MEASURED = Measured(load_figures(), load_prices(), load_quotas())


def test_instances_are_messages_a_second_by_the_seconds_of_each() -> None:
    needs = needs_of(Profile(100), MEASURED)
    agent = MEASURED.seconds("agent", DEFAULT_MEMORY, 1)
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
    needs = needs_of(Profile(10_000, batch=5), MEASURED)
    assert setting(needs.instances["agent"], concurrencies()) is None
    assert needs.table_writes > load_quotas()["table_writes"]


def test_stacks_side_by_side_cost_what_one_would_and_what_stands_there_besides() -> None:
    one, four = (needs_of(Profile(400, stacks, batch=5), MEASURED) for stacks in (1, 4))
    assert 0 < four.usd - one.usd < 200


def test_supervisors_that_run_longer_help_each_other_as_far_as_there_are_shards() -> None:
    def seconds(overdue: int, timeout: int, shards: int) -> float:
        return seconds_to_recover(overdue, 25.0, timeout, shards)

    assert seconds(1_000, TIMEOUT, 16) == seconds(1_000, 900, 64) == pytest.approx(25)
    work = 40_000 * 0.025
    alone, four = seconds(40_000, TIMEOUT, 16), seconds(40_000, 900, 16)
    sixteen = seconds(40_000, 900, 64)
    assert work > alone > four > sixteen > work / 16
    assert four == pytest.approx((work + 60 + 120 + 180) / 4), "one joins each minute"

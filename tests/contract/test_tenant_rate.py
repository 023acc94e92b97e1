"""The rate of each tenant's calls, for all instances of an agent together."""

from collections.abc import Callable

import pytest

from roundsman.agents.guard import RateLimited, TenantAtRate
from roundsman.aws.dynamodb.tenant_rates import ROW_KEPT, DynamoTenantRates, TenantRow
from roundsman.aws.guard import tenant_rate
from roundsman.aws.guard.guard import AgentGuard, guard_of
from roundsman.aws.guard.rate_limit import LONGEST_WAIT
from roundsman.aws.guard.tenant_rate import TenantRates
from roundsman.aws.settings import AgentSettings
from roundsman.errors import TENANT_RATE
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.tenant_rate import LONGEST_RETURN, tenant_key
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import unreachable
from tests.contract.test_rate import Time
from tests.contract.worlds import World

KEY = tenant_key("payment", "shop-1")


def instance(world: World, time: Time, calls_per_second: float = 1) -> TenantRates:
    return TenantRates(
        "payment",
        world.client,
        control_table=world.tables.control,
        calls_per_second=calls_per_second,
        clock=time,
        sleep=time.sleep,
    )


def rows(world: World) -> DynamoTenantRates:
    return DynamoTenantRates(world.client, control_table=world.tables.control)


def asks(world: World, tenant: str = "shop-1", order: str = "ord-1", at: int = NOW) -> Time:
    """Another instance asks; the time after it has waited."""
    time = Time(at)
    instance(world, time).wait(tenant, order, ends_at=at + MINUTE, longest=LONGEST_WAIT)
    return time


def given_back(world: World, order: str = "ord-1", at: int = NOW) -> TenantAtRate:
    with pytest.raises(TenantAtRate) as held:
        asks(world, order=order, at=at)
    return held.value


def at_its_rate(world: World) -> None:
    """The places of the next two seconds are taken."""
    for _ in range(3):
        asks(world)


def guard(
    world: World, time: Time, rate: float | None = None, tenants: float | None = None
) -> AgentGuard:
    settings = AgentSettings(
        control_table=world.tables.control,
        reply_queue_url="-",
        rejected_queue_url="-",
        alert_topic_arn="-",
        breaker_failures=5,
        breaker_recovery=30 * SECOND,
        calls_per_second=rate,
        tenant_calls_per_second=tenants,
    )
    return guard_of("payment", world.client, settings, publish=print, clock=time, sleep=time.sleep)


def call(guard: AgentGuard, tenant: str | None) -> str:
    return guard.call(lambda: "done", ends_at=NOW + MINUTE, order="ord-1", tenant=tenant)


def test_each_tenant_has_places_of_its_own(world: World) -> None:
    assert [asks(world).now - NOW for _ in range(3)] == [0, SECOND, 2 * SECOND]
    assert asks(world, "shop-2").slept == []
    held = given_back(world)
    assert isinstance(held, RateLimited)
    assert held.error_type == TENANT_RATE
    assert str(held) == (
        "payment has reached its limit of 1 calls per second for the tenant of the order"
    )
    assert not held.called


def test_what_is_given_back_comes_again_one_after_the_other_within_an_hour(
    world: World,
) -> None:
    at_its_rate(world)
    assert [given_back(world).until - NOW for _ in range(3)] == [3000, 4000, 5000]
    far = (NOW + LONGEST_RETURN) * 1_000 + 1
    world.client.update_item(
        TableName=world.tables.control,
        Key={"ControlId": {"S": f"rate#payment#{KEY}"}},
        UpdateExpression="SET ReturnAt = :far",
        ExpressionAttributeValues={":far": {"N": str(far)}},
    )
    assert given_back(world).until - NOW == 3000


def test_the_row_has_a_hash_of_the_tenant_and_expires(world: World) -> None:
    at_its_rate(world)
    given_back(world)
    found = world.client.scan(TableName=world.tables.control)["Items"]
    assert {row["ControlId"]["S"] for row in found} == {f"rate#payment#{KEY}", "rate#payment#"}
    assert "shop-1" not in str(found)
    expires = [row["ExpiresAt"]["N"] for row in found if "NextAt" in row]
    assert expires == [str((NOW + ROW_KEPT) // SECOND)]


def test_the_first_order_of_those_that_wait_is_noted_with_the_key(world: World) -> None:
    assert list(rows(world).noted("payment")) == []
    at_its_rate(world)
    for order in ("ord-4", "ord-5"):
        given_back(world, order)
    assert list(rows(world).noted("payment")) == [(KEY, "ord-4")]
    assert list(rows(world).noted("mail")) == []
    assert rows(world).read("payment", KEY) == TenantRow(returns_until=NOW + 5 * SECOND)


def test_calls_of_one_tenant_wait_in_few_instances(world: World) -> None:
    fast = instance(world, time := Time(), 10)
    for _ in range(4):
        instance(world, Time(), 10).wait(
            "shop-1", "ord-1", ends_at=NOW + MINUTE, longest=LONGEST_WAIT
        )
    with pytest.raises(TenantAtRate):  # its place is in 400 ms
        fast.wait("shop-1", "ord-1", ends_at=NOW + MINUTE, longest=LONGEST_WAIT)
    fast.wait("shop-1", "ord-1", ends_at=NOW + MINUTE, longest=2 * LONGEST_WAIT)
    assert time.slept == [400]


def test_a_rate_that_is_lifted_lets_every_call_pass_at_once_until_then(
    world: World,
) -> None:
    until = NOW + MINUTE
    rows(world).lift("payment", "shop-1", until=until, by="amy", now=NOW)
    assert [asks(world).slept for _ in range(5)] == [[]] * 5
    found = rows(world).read("payment", KEY)
    assert (found.lifted_until, found.by) == (until, "amy")
    for _ in range(3):
        asks(world, at=until)
    given_back(world, at=until)


def test_one_that_already_waits_learns_that_the_rate_is_lifted(world: World) -> None:
    at_its_rate(world)
    given_back(world)
    rows(world).lift("payment", "shop-1", until=NOW + MINUTE, by="amy", now=NOW)
    assert asks(world).slept == []
    rows(world).lift("payment", "shop-1", until=NOW, by="amy", now=NOW)
    given_back(world)


def test_a_call_above_the_rate_of_its_tenant_takes_no_place_of_the_agent(
    moto_world: World,
) -> None:
    time = Time()
    guarded = guard(moto_world, time, rate=2, tenants=0.1)
    assert call(guarded, "shop-1") == "done"
    for _ in range(5):
        with pytest.raises(TenantAtRate):
            call(guarded, "shop-1")
    assert call(guarded, "shop-2") == "done"
    assert time.slept == [500]


def test_orders_without_a_tenant_are_not_limited_and_agents_without_the_rate_write_nothing(
    moto_world: World,
) -> None:
    guarded = guard(moto_world, Time(), tenants=0.1)
    assert [call(guarded, None) for _ in range(3)] == ["done"] * 3
    assert guard(moto_world, Time()).tenants is None
    with unreachable(moto_world.client, "UpdateItem"):
        assert call(guard(moto_world, Time()), "shop-1") == "done"
    assert moto_world.client.scan(TableName=moto_world.tables.control)["Items"] == []


def test_where_the_row_cannot_be_written_calls_pass(moto_world: World) -> None:
    with unreachable(moto_world.client, "UpdateItem"):
        assert [asks(moto_world).slept for _ in range(5)] == [[]] * 5


def test_a_note_that_fails_changes_nothing_for_the_call(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    count: Callable[[str], None] = counted.append
    monkeypatch.setattr(tenant_rate, "count", count)
    monkeypatch.setattr(DynamoTenantRates, "note", lambda *_: 1 / 0)
    at_its_rate(moto_world)
    assert given_back(moto_world).until == NOW + 3 * SECOND
    assert counted == ["TenantMarksFailed"]


def test_an_instance_remembers_the_places_of_so_many_tenants(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_rate, "MOST_KEPT", 2)
    rates = instance(moto_world, Time())
    for number in range(5):
        rates.wait(f"shop-{number}", "ord-1", ends_at=NOW + MINUTE, longest=LONGEST_WAIT)
    assert len(rates._kept) == 1

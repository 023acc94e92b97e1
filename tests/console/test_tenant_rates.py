"""What operators see of a tenant that is at its rate at an agent, and how they lift the rate."""

from collections.abc import Mapping

import pytest

from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates
from roundsman.errors import CallRefused, UnreadableRecord
from roundsman_console.acts.hold import lift
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.project import of_each_agent

LIFT = ("lift", "payment", "shop-1", "--for", "1h")
REASON = "payment has reached its limit of 0.1 calls per second for the tenant of the order"


@pytest.fixture
def stack_parameters() -> Mapping[str, str]:
    return {**of_each_agent("BreakerFailures", "100"), "Payment.TenantCallsPerSecond": "0.1"}


@pytest.fixture
def at_rate(operator: Operator) -> Operator:
    """Three orders of one tenant and one of another: the first of each is charged."""
    for number in (1, 2, 3):
        operator.world.submit(order(f"ord-{number}", tenant="shop-1"))
    operator.world.submit(order("ord-4", tenant="shop-2"))
    operator.world.run()
    return operator


def states(operator: Operator) -> list[str]:
    return [str(operator.world.task(f"ord-{number}").state) for number in (1, 2, 3, 4)]


def said(operator: Operator, *arguments: str) -> str:
    return " ".join(operator.types(*arguments).stdout.split())


def test_an_order_whose_tenant_is_at_its_rate_says_so(at_rate: Operator) -> None:
    assert states(at_rate) == ["Completed", "Retry", "Retry", "Completed"]
    found = at_rate.reads("why", "ord-2")
    assert_schema("why", found)
    assert (found["case"], found["agent"]) == ("tenant_rate", "payment")
    sentence = "ord-2 waits for the rate of tenant shop-1 at payment, for charge_card; it comes"
    assert str(found["sentence"]).startswith(sentence)
    assert found["next"] == "roundsman lift payment shop-1 --for 1h --reason '...'"
    evidence = found["evidence"]
    assert isinstance(evidence, list)
    assert REASON in evidence
    assert REASON in said(at_rate, "show", "ord-2")
    assert f"charge_card: waits: {REASON}" in said(at_rate, "ls", "--state", "Retry")


def test_agents_lists_the_tenants_that_are_at_their_rates(at_rate: Operator) -> None:
    line = "payment: tenant shop-1 is at its rate; the calls above it come again until "
    assert line in said(at_rate, "agents")
    tenants = at_rate.reads("agents")["tenants"]
    assert isinstance(tenants, list)
    [found] = tenants
    assert (found["agent"], found["tenant"], found["by"]) == ("payment", "shop-1", "")


def test_a_rate_that_is_lifted_lets_those_that_wait_go_on(at_rate: Operator) -> None:
    done = at_rate.asks(*LIFT)
    assert done.exit_code == 0, done.output
    at_rate.world.pass_time(2)
    assert states(at_rate) == ["Completed"] * 4
    assert "payment: the rate of tenant shop-1 is lifted until " in said(at_rate, "agents")
    assert "by ops." in said(at_rate, "agents")
    history = at_rate.reads("show", "ord-2")["history"]
    assert any("run by ops: routine" in str(row) for row in history)  # type: ignore[attr-defined]
    at_rate.world.submit(order("ord-5", tenant="shop-1"))
    at_rate.world.run()
    assert at_rate.world.task("ord-5").state == "Completed"


def test_what_lifting_does_is_said_as_json(at_rate: Operator) -> None:
    found = at_rate.reads(*LIFT, "--as", "ops", "--reason", "routine", "--yes")
    assert_schema("lift", found)
    assert (found["agent"], found["tenant"], found["woken"]) == ("payment", "shop-1", 2)


def test_only_the_first_that_wait_are_run(
    at_rate: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lift, "FIRST", 1)
    assert "1 order that waited: run from now on" in at_rate.asks(*LIFT).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nobody", "shop-1", "--for", "1h"), "No agent 'nobody'"),
        (("payment", "two words", "--for", "1h"), "A tenant is 1 to 128 ASCII letters"),
        (("payment", "s" * 129, "--for", "1h"), "A tenant is 1 to 128 ASCII letters"),
        (("payment", "shop-1", "--for", "2d"), "2d is too long"),
    ],
)
def test_what_cannot_be_lifted_is_refused(
    operator: Operator, arguments: tuple[str, ...], sentence: str
) -> None:
    refused = operator.asks("lift", *arguments)
    assert refused.exit_code != 0
    assert sentence in refused.output


def test_agents_are_listed_to_one_who_may_not_read_rates(
    at_rate: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise CallRefused("AccessDeniedException")

    monkeypatch.setattr(DynamoTenantRates, "noted", refused)
    listed = said(at_rate, "agents")
    assert "payment taken" in listed
    assert "You may not read which tenants are at their rates." in listed
    assert at_rate.reads("agents")["tenants"] is None


def test_the_name_of_a_tenant_is_gone_with_the_order_that_shows_it(
    at_rate: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DynamoStore, "load", lambda *_, **__: None)
    assert "payment: a tenant is at its rate" in said(at_rate, "agents")

    def unreadable(*_: object, **__: object) -> None:
        raise UnreadableRecord("ord-2", "State", "is not known")

    monkeypatch.setattr(DynamoStore, "load", unreadable)
    assert "payment: a tenant is at its rate" in said(at_rate, "agents")

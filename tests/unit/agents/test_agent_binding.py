"""Which functions an agent takes for which steps."""

from datetime import timedelta

import pytest

from roundsman import Agent, Compensation, DefinitionError, Step, StepRequest
from roundsman.model.json import Json
from tests.support.agent_samples import charge_card, returning


@pytest.fixture
def payment() -> Agent:
    return Agent("payment")


def test_a_bound_function_is_returned_unchanged(payment: Agent) -> None:
    def charge(_: StepRequest) -> Json:
        return None

    assert payment.performs(charge_card)(charge) is charge
    assert payment.compensates(charge_card)(charge) is charge


def test_a_step_is_bound_once(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    with pytest.raises(DefinitionError, match="step 'charge_card' has two functions for perform"):
        payment.performs(charge_card)(returning(None))


def test_a_step_of_another_agent_is_refused() -> None:
    with pytest.raises(DefinitionError, match="belongs to agent payment; bind it there"):
        Agent("inventory").performs(charge_card)


def test_a_step_without_compensation_is_not_compensated(payment: Agent) -> None:
    plain = Step(name="charge_card", agent="payment", complete_within=timedelta(seconds=60))
    with pytest.raises(DefinitionError, match="has no compensation; give it"):
        payment.compensates(plain)


def test_two_different_steps_of_one_name_are_refused(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    slower = Step(
        name="charge_card",
        agent="payment",
        complete_within=timedelta(seconds=90),
        compensation=Compensation(),
    )
    with pytest.raises(DefinitionError, match="two different steps are named 'charge_card'"):
        payment.compensates(slower)


def test_an_equal_step_defined_elsewhere_is_the_same_step(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    again = Step(
        name="charge_card",
        agent="payment",
        complete_within=timedelta(seconds=60),
        compensation=Compensation(),
    )
    payment.compensates(again)(returning(None))


def test_an_async_function_is_refused(payment: Agent) -> None:
    async def charge(_: StepRequest) -> None:
        pass

    with pytest.raises(DefinitionError, match="is async, but agents do not await it"):
        payment.performs(charge_card)(charge)


def test_something_that_is_no_step_is_refused(payment: Agent) -> None:
    with pytest.raises(DefinitionError, match="must be a Step"):
        payment.performs("charge_card")  # type: ignore[arg-type]  # the mistake that is meant


def test_an_agent_has_a_plain_name() -> None:
    with pytest.raises(DefinitionError, match="1 to 40 characters of a-z"):
        Agent("Payment Service")

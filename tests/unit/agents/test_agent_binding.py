"""Which functions an agent takes for which steps."""

from datetime import timedelta

import pytest

from roundsman import Agent, Compensation, DefinitionError, Sleep, Step, StepRequest, Workflow
from roundsman.model.json import Json
from tests.support.agent_samples import charge_card, returning


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


def test_something_that_is_no_step_is_refused(payment: Agent) -> None:
    with pytest.raises(DefinitionError, match="must be a Step"):
        payment.performs("charge_card")  # type: ignore[arg-type]  # the mistake that is meant


def test_an_agent_has_a_plain_name() -> None:
    with pytest.raises(DefinitionError, match="1 to 40 characters of a-z"):
        Agent("Payment Service")


# A step without its function


def of(*steps: Step, name: str = "checkout") -> Workflow:
    return Workflow(name=name, steps=steps, complete_within=timedelta(hours=1))


elsewhere = Step(name="ship", agent="shipping", complete_within=timedelta(seconds=60))
shared = Step(name="notify", agents=("mail", "payment"), complete_within=timedelta(seconds=60))


def test_a_step_of_a_workflow_without_a_function_is_refused_at_import() -> None:
    checkout = of(charge_card, elsewhere)
    payment = Agent("payment", {checkout.name: checkout})
    with pytest.raises(
        DefinitionError,
        match=r"^agent 'payment': step 'charge_card' of workflow 'checkout' has no function; add "
        r"one with @payment\.performs\(\.\.\.\); agent 'payment': step 'charge_card' of workflow "
        r"'checkout' has a compensation but no function that undoes it; add one with "
        r"@payment\.compensates\(\.\.\.\), or remove the compensation$",
    ):
        _ = payment.lambda_handler


def test_a_compensation_without_a_function_is_refused_without_workflows_too(payment: Agent) -> None:
    payment.performs(charge_card)(returning(None))
    with pytest.raises(DefinitionError, match="'charge_card' has a compensation but no function"):
        _ = payment.lambda_handler
    payment.compensates(charge_card)(returning(None))
    assert callable(payment.lambda_handler)


def test_a_step_that_is_only_undone_is_refused(payment: Agent) -> None:
    payment.compensates(charge_card)(returning(None))
    assert payment.missing_functions() == [
        "agent 'payment': step 'charge_card' has no function; add one with @payment.performs(...)"
    ]


def test_each_agent_of_a_step_needs_its_function() -> None:
    for name in ("mail", "payment"):
        (missing,) = Agent(name).missing_functions([of(elsewhere, shared)])
        assert missing.startswith(f"agent {name!r}: step 'notify' of workflow 'checkout' has no")


def test_a_function_of_a_step_that_no_workflow_has_is_kept_for_older_plans() -> None:
    newest = of(elsewhere)
    payment = Agent("payment", {newest.name: newest})
    payment.performs(charge_card)(returning(None))
    payment.compensates(charge_card)(returning(None))
    assert payment.missing_functions([newest]) == []
    assert callable(payment.lambda_handler)


def test_a_step_of_two_workflows_is_named_once(payment: Agent) -> None:
    plain = Step(name="charge", agent="payment", complete_within=timedelta(seconds=60))
    (missing,) = payment.missing_functions([of(plain), of(plain, name="renewal")])
    assert "of workflow 'checkout'" in missing


def test_a_sleep_has_no_function() -> None:
    agent, nap = Agent("payment"), Sleep(name="nap", for_=timedelta(days=1))
    with pytest.raises(DefinitionError, match="step 'nap' is a sleep, which has no function"):
        agent.performs(nap)

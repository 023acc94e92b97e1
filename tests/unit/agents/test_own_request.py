"""Each call of an author's function gets the request as it was, whatever the last one did to it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from roundsman import Agent, Compensation, DidNotHappen, Json, StepRequest, TransientError
from roundsman.model.json import canonical_json
from roundsman.wire.messages import AgentRequest
from tests.support.agent_samples import Clock, ask, charge_card, request

FENCED = replace(charge_card, compensation=Compensation(fences_late_performs=True))
LOST = TransientError("the connection was reset")


class Seen:
    """Functions that note what they get, change all of it, and fail at first."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def ending(self, *ends: object) -> Callable[[StepRequest], object]:
        left = list(ends)

        def function(asked: StepRequest) -> object:
            self.given.append(canonical_json([asked.input, asked.results, asked.item]))
            change(asked.input)
            change(asked.results)
            change(asked.item)
            end = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(end, BaseException):
                raise end
            return end

        return function


def change(value: Json) -> None:
    """Change the value and all that is in it."""
    inner: list[Json] = []
    if isinstance(value, dict):
        inner = [*value.values()]
        value["changed"] = True
    if isinstance(value, list):
        inner = [*value]
        value.append("changed")
    for one in inner:
        change(one)


def asked_with(**changes: object) -> AgentRequest:
    return request(
        step="charge_card[0]",
        input={"lines": [{"sku": "a"}], "to": {"city": "Zug"}},
        results={"reserve_stock": {"places": [{"id": 1}]}, "charge_card[0]": {"ids": [1]}},
        item={"sku": "a", "parts": [1]},
        **changes,
    )


@pytest.mark.parametrize("operation", ["perform", "undo"])
def test_the_second_and_the_third_try_get_what_the_first_one_got(operation: str) -> None:
    seen, agent = Seen(), Agent("payment")
    function = seen.ending(LOST)
    if operation == "perform":
        agent.performs(charge_card)(function)
    else:
        agent.compensates(charge_card)(function)
    ask(agent, Clock(), asked_with(operation=operation))
    assert len(seen.given) == 3
    assert len(set(seen.given)) == 1


@pytest.mark.parametrize("operation", ["perform", "undo"])
def test_what_a_probe_changes_is_not_given_to_the_function(operation: str) -> None:
    seen, agent = Seen(), Agent("payment")
    agent.probes(FENCED)(seen.ending(DidNotHappen()))
    agent.performs(FENCED)(seen.ending("done"))
    agent.compensates(FENCED)(seen.ending(None))
    ask(agent, Clock(), asked_with(operation=operation))
    assert len(seen.given) == 2
    assert len(set(seen.given)) == 1


def test_what_a_function_changes_is_not_given_to_the_probe() -> None:
    seen, agent = Seen(), Agent("payment")
    agent.probes(charge_card)(seen.ending(DidNotHappen()))
    agent.performs(charge_card)(seen.ending(LOST, "done"))
    ask(agent, Clock(), asked_with(outcome_unknown=False))
    assert len(seen.given) == 3, "performed, probed, performed"
    assert len(set(seen.given)) == 1


def test_the_second_try_of_a_reminder_gets_what_the_first_one_got() -> None:
    seen, agent = Seen(), Agent("payment")
    agent.reminds(charge_card)(seen.ending(LOST, None))
    ask(agent, Clock(), asked_with(reminder=1))
    assert len(seen.given) == 2
    assert len(set(seen.given)) == 1


def test_a_request_is_as_it_was_after_its_answer() -> None:
    """A world, or a host of its own, may answer it again."""
    seen, agent, asked = Seen(), Agent("payment"), asked_with()
    agent.performs(charge_card)(seen.ending("done"))
    ask(agent, Clock(), asked)
    ask(agent, Clock(), asked)
    assert len(set(seen.given)) == 1


def test_a_function_sees_which_preceding_steps_nobody_has_answered() -> None:
    agent = Agent("payment")
    seen: list[bool] = []

    @agent.performs(charge_card)
    def charge(asked: StepRequest) -> None:
        seen.extend(asked.came(name) for name in ("approve", "pick", "pick[1]", "pick[0]", "quote"))

    ask(agent, Clock(), request(unanswered=("approve", "pick[1]")))
    assert seen == [False, False, False, True, True]

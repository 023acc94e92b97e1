"""Done: a function's reply that adds steps, checked before it is sent."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

import pytest

from roundsman import NamedStep
from roundsman.agents.agent import Agent
from roundsman.agents.callbacks import succeeded_reply
from roundsman.agents.outcomes import (
    LARGEST_THEN,
    WRONG_END,
    WRONG_THEN,
    DidNotHappen,
    Done,
    Happened,
    succeeded,
)
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import Compensation
from roundsman.errors import InvalidInput
from roundsman.model.events import Outcome
from roundsman.model.task import EarlyEnd, Effect, StepToAdd
from roundsman.wire.messages import read_reply
from tests.support.agent_samples import Clock, reply, request
from tests.support.machine_world import step, workflow

LEG = step("leg")
CHARGE = step("charge_card", agent="payment", compensation=Compensation())


class Given(TypedDict):
    to: str


@dataclass
class Dates:
    first: str
    nights: int = 1


def agent_that(returns: Callable[[StepRequest], object]) -> Agent:
    agent = Agent("payment")
    agent.performs(CHARGE)(returns)
    agent.compensates(CHARGE)(returns)
    return agent


def problem(*then: NamedStep) -> str:
    ended = succeeded(Done(None, then))
    assert ended.error is not None
    assert (ended.error.type, ended.error.unexpected) == (WRONG_THEN, True)
    assert (ended.outcome, ended.then) == (Outcome.TRANSIENT, ())
    return ended.error.message


def test_a_reply_names_the_steps_that_it_adds(clock: Clock) -> None:
    first = LEG.named("a", input={"to": "BRU"})
    done = Done({"legs": 2}, then=(first, LEG.named("b", after=(first, "find"))))
    answer = reply(agent_that(lambda _: done), clock)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"legs": 2})
    assert answer.then == (
        StepToAdd("leg[a]", (), {"to": "BRU"}),
        StepToAdd("leg[b]", ("leg[a]", "find"), None),
    )
    assert read_reply(answer.body()) == answer


def test_an_input_may_be_a_dataclass_and_is_sent_as_json() -> None:
    kind = replace(LEG, input=Dates)
    ended = succeeded(Done(then=(kind.named("a", input=Dates("monday")),)))
    assert ended.then[0].input == {"first": "monday", "nights": 1}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"to": 3}, "adds leg[a]: its input: to: must be text"),
        ({}, "adds leg[a]: its input: to: missing"),
        ("BRU", "adds leg[a]: its input must be an object"),
        ({"to": {1, 2}}, "adds leg[a]: its input: result.to is a set, which is not JSON"),
        ({"to": "x" * 40_000}, "adds leg[a]: its input has more than 16384 bytes"),
        ({"to": "x" * 16_400}, "adds leg[a]: its input has more than 16384 bytes"),
    ],
)
def test_an_input_of_the_wrong_type_fails_the_attempt_and_the_sentence_has_no_value(
    given: object, why: str
) -> None:
    kind = replace(LEG, input=Given)
    found = problem(kind.named("a", input=given))
    assert found.startswith(why)
    assert "BRU" not in found


def test_more_input_than_a_reply_can_carry_fails_the_attempt() -> None:
    text = "x" * 16_000
    many = tuple(LEG.named(f"n{n}", input=text) for n in range(LARGEST_THEN // 16_000 + 1))
    size = 16_002 * len(many)
    assert problem(*many) == f"adds {len(many)} steps with {size} bytes of input; 262144 fit"


def test_the_effect_of_an_attempt_whose_reply_is_wrong_stands(clock: Clock) -> None:
    done = Done(then=(replace(LEG, input=Given).named("a"),))
    answer = reply(agent_that(lambda _: done), clock)
    assert answer.error is not None
    assert (answer.error.type, answer.effect) == (WRONG_THEN, Effect.STANDS)


def test_an_undo_adds_no_steps(clock: Clock) -> None:
    undo = request(operation="undo", idempotency_key="ord-1001/charge_card/undo")
    answer = reply(agent_that(lambda _: Done(then=(LEG.named("a"),))), clock, undo)
    assert answer.error is not None
    assert (answer.error.type, answer.then) == (WRONG_THEN, ())


@pytest.mark.parametrize("then", [[], LEG, ("leg[a]",), (LEG,)])
@pytest.mark.parametrize("kind", [Done, Happened])
def test_what_is_not_a_tuple_of_named_steps_is_refused(kind: type[Done], then: object) -> None:
    with pytest.raises(TypeError, match="then must be a tuple of steps"):
        kind(None, then)  # type: ignore[arg-type]


def test_a_probe_adds_what_the_reply_that_was_lost_would_have_added(clock: Clock) -> None:
    agent = agent_that(lambda _: None)
    found: list[object] = [Happened("booked", then=(LEG.named("a"),)), DidNotHappen()]
    agent.probes(CHARGE)(lambda _: found[0])
    answer = reply(agent, clock, request(outcome_unknown=True))
    assert (answer.result, [one.name for one in answer.then]) == ("booked", ["leg[a]"])


def test_a_callback_is_answered_with_steps_to_add(clock: Clock) -> None:
    seen = list[StepRequest]()
    reply(agent_that(seen.append), clock)
    text = succeeded_reply(seen[0].callback_token, Done("yes", then=(LEG.named("a"),)))
    answer = read_reply(text)
    assert (answer.callback, answer.result) == (True, "yes")
    assert answer.then == (StepToAdd("leg[a]"),)


def test_a_function_gets_what_its_step_was_added_with_and_a_copy_of_its_own(clock: Clock) -> None:
    seen = list[StepRequest]()
    agent = agent_that(seen.append)
    asked = request(step="charge_card[a]", step_input={"to": "BRU", "more": [1]})
    reply(agent, clock, asked)
    assert seen[0].step_input_as(Given) == {"to": "BRU"}
    assert seen[0].index is None
    assert seen[0].step_input is not asked.step_input
    reply(agent, clock)
    with pytest.raises(InvalidInput):
        seen[1].step_input_as(Given)


def test_an_agent_needs_the_functions_of_the_kinds_of_its_workflow() -> None:
    agent = Agent("worker", {"story": workflow(step("a"), may_add=(LEG,))})
    agent.performs(step("a"))(lambda _: None)
    assert agent.missing_functions() == [
        "agent 'worker': step 'leg' of workflow 'story' has no function; add one with "
        "@worker.performs(...)"
    ]


# --- An early end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("undo", [False, True])
def test_a_reply_ends_its_order_early(clock: Clock, undo: bool) -> None:
    done = Done({"wanted": False}, end="not wanted", undo=undo)
    answer = reply(agent_that(lambda _: done), clock)
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, {"wanted": False})
    assert answer.end == EarlyEnd("not wanted", undo)
    assert read_reply(answer.body()) == answer


def test_a_probe_that_finds_the_effect_ends_it_early_too() -> None:
    assert succeeded(Happened(end="not wanted").as_done()).end == EarlyEnd("not wanted")


def test_the_reason_has_no_masked_value(clock: Clock) -> None:
    asked = request(input={"orderId": "ord-1", "card": "4111-1111"}, masked=("input.card",))
    agent = agent_that(lambda _: Done(end="the card 4111-1111 is not wanted"))
    answer = reply(agent, clock, asked)
    assert answer.end == EarlyEnd("the card (masked) is not wanted")


def test_an_undo_ends_no_order(clock: Clock) -> None:
    asked = request(operation="undo", perform_key="ord-1/charge_card/perform")
    answer = reply(agent_that(lambda _: Done(end="not wanted")), clock, asked)
    assert answer.error is not None
    assert answer.error.type == WRONG_END
    assert answer.end is None


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: Done(end=3), TypeError),  # type: ignore[arg-type]  # what is tested
        (lambda: Done(end=""), ValueError),
        (lambda: Done(undo=True), ValueError),
        (lambda: Done(end="not wanted", then=(LEG.named("a"),)), ValueError),
        (lambda: Happened(undo=True), ValueError),
    ],
)
def test_an_early_end_that_says_nothing_or_adds_steps_is_refused(
    made: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        made()

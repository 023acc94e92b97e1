"""No text of an order has a masked value, whoever wrote the text and wherever it is kept."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, TypedDict

import pytest

from roundsman import (
    Agent,
    Archive,
    Done,
    Json,
    Masked,
    PermanentError,
    Signal,
    Step,
    StepRequest,
    Text,
    TransientError,
    Workflow,
)
from roundsman.agents.callbacks import Callback
from roundsman.engine import masks
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Resubmit
from roundsman.model.masked_values import MASK
from roundsman_testing import InvariantBroken, World

IBAN = "DE02120300000000202051"
SPACED = "DE02 1203 0000 0000 2020 51"


class Claim(TypedDict):
    iban: Annotated[str, Text(40), Masked()]
    city: Annotated[str, Text(40)]


class Leg(TypedDict):
    passport: Annotated[str, Text(40), Masked()]


STEP = Step(name="pay", agent="bank", complete_within=timedelta(seconds=30))
LEG = Step(name="leg", agent="bank", complete_within=timedelta(seconds=30), input=Leg)
ORDER: dict[str, Json] = {"iban": IBAN, "city": "Rotterdam-Zuid"}


def workflow(*steps: Step, may_add: tuple[Step, ...] = ()) -> Workflow:
    return Workflow(
        name="claims",
        steps=steps or (STEP,),
        input=Claim,
        complete_within=timedelta(days=9),
        on_failure=Archive(),
        may_add=may_add,
    )


def world_of(
    function: Callable[[StepRequest], object],
    *steps: Step,
    may_add: tuple[Step, ...] = (),
) -> World:
    agent = Agent("bank")
    for step in (*(steps or (STEP,)), *may_add):
        if step.agent_names():
            agent.performs(step)(function)
    return World(workflow(*steps, may_add=may_add), agents=[agent])


def all_texts(world: World, order: str) -> str:
    """All that is told of the order."""
    task = world.task(order)
    alerts = [f"{one.subject} {one.body} {one.text} {one.sms}" for one in world.post.alerts]
    records = [record.error for record in task.steps.values()]
    return f"{alerts} {world.post.statuses} {world.history(order)} {task.ending} {records}"


def submitted(world: World) -> str:
    return world.submit(ORDER, options=ProcessingOptions(reply_to="a-queue"))


def refuses(request: StepRequest) -> Json:
    raise PermanentError("Refused", f"{request.input['iban']} or {SPACED} is blocked")


@pytest.mark.parametrize("agent_knows", [True, False])
def test_an_agents_error_is_told_without_the_value(
    agent_knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the request of an older scheduler does not say what is masked."""
    if not agent_knows:
        monkeypatch.setattr(masks, "masked_in_request", lambda *_: ())
    world = world_of(refuses)
    order = submitted(world)
    world.run()
    error = world.task(order).step("pay").error
    assert error is not None
    assert error.message == f"{MASK} or {MASK} is blocked"
    told = all_texts(world, order)
    assert MASK in told
    assert IBAN not in told
    assert SPACED not in told


def test_a_cut_error_has_no_half_of_the_value() -> None:
    def fails(request: StepRequest) -> Json:
        raise PermanentError("Refused", "x" * 985 + str(request.input["iban"]))

    world = world_of(fails)
    order = submitted(world)
    world.run()
    assert IBAN[:4] not in all_texts(world, order)


def test_an_answer_and_the_words_of_people_are_told_without_the_value() -> None:
    world = world_of(lambda _: Callback(within=timedelta(days=1)))
    order = submitted(world)
    world.run(for_=timedelta(minutes=1))
    world.answer(order, "pay", error=TransientError(f"no account {SPACED}"))
    world.run(for_=timedelta(seconds=1))
    world.operator.ask(order, _resubmit(world))
    world.run(for_=timedelta(seconds=1))
    world.cancel(order, reason=f"wrong account {IBAN}")
    world.run()
    told = all_texts(world, order)
    assert f"no account {MASK}" in told
    assert f"wrong account {MASK}" in told
    assert IBAN not in told
    assert SPACED not in told


def _resubmit(world: World) -> Resubmit:
    """A command that is refused, whose reason and whose steps have the value."""
    return Resubmit(world.operator.asked(f"pay {IBAN} again"), steps=(IBAN,))


def test_a_masked_result_and_masked_data_are_in_no_later_error() -> None:
    quote = Step(
        name="quote",
        agent="bank",
        complete_within=timedelta(seconds=30),
        result_masked=True,
    )
    waits = Signal("code", within=timedelta(days=1), after=(quote,), result_masked=True)
    pay = Step(name="pay", agent="bank", complete_within=timedelta(seconds=30), after=(waits,))

    def does(request: StepRequest) -> Json:
        if request.step == "quote":
            return {"number": "Q-778899"}
        raise PermanentError("Refused", f"{request.results} q 778899 s-554433")

    world = world_of(does, quote, waits, pay)
    order = submitted(world)
    world.run(for_=timedelta(minutes=1))
    world.signal(order, "code", {"secret": "S-554433"})
    world.run()
    error = world.task(order).step("pay").error
    assert error is not None
    assert "778899" not in all_texts(world, order)
    assert "554433" not in all_texts(world, order)
    assert error.message.endswith(f"{MASK} {MASK}")


def test_an_added_step_may_have_a_name_of_the_order_that_is_not_masked() -> None:
    def does(request: StepRequest) -> Done:
        if request.step == "pay":
            return Done(then=(LEG.named(str(request.input["city"]), input={"passport": "P-1"}),))
        raise PermanentError("Refused", "the leg is full")

    world = world_of(does, may_add=(LEG,))
    order = submitted(world)
    world.run()
    assert "leg[Rotterdam-Zuid]" in all_texts(world, order)


@pytest.mark.parametrize("agent_knows", [True, False])
def test_an_added_step_that_is_named_by_a_masked_value_is_not_added(
    agent_knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not agent_knows:
        monkeypatch.setattr(masks, "masked_in_request", lambda *_: ())
    leg: dict[str, Json] = {"passport": "P-1"}
    world = world_of(
        lambda request: Done(then=(LEG.named(str(request.input["iban"]), input=leg),)),
        may_add=(LEG,),
    )
    order = submitted(world)
    world.run(for_=timedelta(hours=2))
    assert not world.task(order).added
    told = all_texts(world, order)
    assert IBAN not in told
    assert (
        "pay adds a leg whose name has a value that is masked; name it by something that is not, "
        "such as its number"
    ) in told


@pytest.mark.parametrize("agent_knows", [True, False])
def test_the_masked_input_of_an_added_step_is_in_no_error_of_it(
    agent_knows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not agent_knows:
        monkeypatch.setattr(masks, "masked_in_request", lambda *_: ())

    def does(request: StepRequest) -> Done:
        if request.step == "pay":
            return Done(then=(LEG.named("a", input={"passport": "P-998877"}),))
        raise PermanentError("Refused", f"passport {request.step_input}")

    world = world_of(does, may_add=(LEG,))
    order = submitted(world)
    world.run()
    told = all_texts(world, order)
    assert MASK in told
    assert "998877" not in told


def test_a_world_refuses_an_error_type_of_the_order_and_says_what_to_change() -> None:
    def fails(request: StepRequest) -> Json:
        raise PermanentError(f"Refused_{request.input['iban']}", "it is blocked")

    world = world_of(fails)
    submitted(world)
    with pytest.raises(InvariantBroken) as broken:
        world.run()
    assert "the type of an error of pay has the masked value of iban" in str(broken.value)
    assert "give the error one type for all orders" in str(broken.value)


def test_a_world_refuses_a_text_that_is_not_masked_and_says_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if nothing masked what enters."""
    monkeypatch.setattr(masks, "masked_in_request", lambda *_: ())
    monkeypatch.setattr(masks, "without_masked", lambda event, _: event)
    world = world_of(refuses)
    submitted(world)
    with pytest.raises(InvariantBroken) as broken:
        world.run()
    for where in (
        "the alert 'Roundsman: claims/pay fails: Refused (1 order)'",
        "the message of an error of pay",
        "the reason of its end",
        "the detail of failed",
        "the history row 'failed' of pay",
    ):
        assert f"{where} has the masked value of iban" in str(broken.value)

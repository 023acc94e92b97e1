"""`tests/outcomes.py` of a new application: how its tests' orders end, and what answers them."""

from dataclasses import replace
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from roundsman import (
    ANY,
    AnyOf,
    Archive,
    Compensation,
    Signal,
    Skip,
    Sleep,
    Step,
    Undo,
    Wait,
    Workflow,
)
from roundsman.definition.workflow import ErrorPolicy
from roundsman_testing import TaskState, World

PROJECT = Path(__file__).parents[2]
HOUR = timedelta(hours=1)
RESERVE = Step(
    name="reserve", agent="stock", complete_within=timedelta(seconds=5), compensation=Compensation()
)
PAY = Step(name="pay", agent="payment", after=(RESERVE,), complete_within=timedelta(seconds=5))
ORDER = Workflow(name="order", steps=[RESERVE, PAY], complete_within=HOUR, on_failure=Undo())
TELL = Step(name="tell", agent="mail", complete_within=timedelta(seconds=5))
ITEMS = replace(PAY, for_each="input.items")
ENOUGH = replace(ITEMS, enough=2, compensation=Compensation())


def asked(enough: int, when: str | None = None) -> Workflow:
    """Reserve and pay at the same time, and ask once enough of them have succeeded."""
    pay = replace(PAY, after=(), compensation=Compensation(), when=when)
    ask = Signal("ask", within=HOUR / 2, after=AnyOf(RESERVE, pay, enough=enough), otherwise=None)
    return replace(ORDER, steps=[RESERVE, pay, ask])


def by_type(policies: dict[str, ErrorPolicy]) -> Workflow:
    return replace(ORDER, steps=[RESERVE, replace(PAY, on_error=policies)])


def outcomes() -> ModuleType:
    """The module of that name of a new application."""
    path = PROJECT / "console/roundsman_dev/project/skeleton/tests/outcomes.py"
    spec = spec_from_file_location("outcomes", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("workflow", "state"),
    [
        (ORDER, TaskState.UNDONE),
        (replace(ORDER, on_failure=Wait(HOUR / 60, 2, Archive())), TaskState.ARCHIVED),
        (replace(ORDER, steps=[RESERVE, replace(PAY, on_failure=Archive())]), TaskState.ARCHIVED),
        (replace(ORDER, point_of_no_return=RESERVE), TaskState.ARCHIVED),
        (replace(ORDER, steps=[RESERVE, replace(PAY, when="input.paid")]), TaskState.COMPLETED),
        (replace(ORDER, steps=[RESERVE, replace(ITEMS, when="input.paid")]), TaskState.COMPLETED),
        (replace(ORDER, steps=[RESERVE, replace(ITEMS, tolerate=2)]), TaskState.COMPLETED),
        (replace(ORDER, steps=[RESERVE, replace(ITEMS, tolerate=1)]), TaskState.UNDONE),
        (replace(ORDER, steps=[RESERVE, replace(ITEMS, for_each="`[]`")]), TaskState.COMPLETED),
        (asked(enough=1), TaskState.COMPLETED),
        (asked(enough=2), TaskState.UNDONE),
        (asked(enough=1, when="input.paid"), TaskState.COMPLETED),
        (asked(enough=2, when="input.paid"), TaskState.UNDONE),
        (replace(ORDER, steps=[RESERVE, ENOUGH]), TaskState.UNDONE),
        (
            replace(ORDER, steps=[RESERVE, replace(ENOUGH, on_failure=Archive())]),
            TaskState.ARCHIVED,
        ),
        (replace(ORDER, steps=[RESERVE, replace(ENOUGH, for_each="`[]`")]), TaskState.UNDONE),
        (by_type({"Refused": Archive()}), TaskState.ARCHIVED),
        (by_type({ANY: Archive()}), TaskState.ARCHIVED),
        (by_type({"Refused": Skip(), ANY: Archive()}), TaskState.COMPLETED),
        (by_type({"Other": Archive()}), TaskState.UNDONE),
        (replace(ORDER, when_undone=(TELL,)), TaskState.UNDONE),
    ],
)
def test_the_tests_of_an_application_know_how_its_orders_end(
    workflow: Workflow, state: TaskState
) -> None:
    world = World(workflow)
    world.on("pay").refuses("Refused")
    order_id = world.submit({"items": [1, 2], "paid": False})
    task = world.run().task(order_id)
    assert task.state is state
    assert outcomes().state_after_refusal(workflow, task) is state


def test_a_sleep_is_not_ended_where_a_signal_may_be_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted, late = Signal("accepted", within=HOUR / 2), Sleep(name="late", for_=HOUR / 4)
    pay = replace(PAY, after=AnyOf(accepted, late))
    waits = replace(ORDER, steps=[accepted, late, pay])
    world = World(waits)
    order_id = world.submit({})
    task = world.run(for_=HOUR / 60).task(order_id)
    module, sent = outcomes(), list[str]()

    class Sender:
        def __init__(self, *_: object) -> None:
            pass

        def signal(self, _: str, name: str, *__: object, **___: object) -> None:
            sent.append(name)

        def resolve(self, _: str, step: str, **__: object) -> None:
            sent.append(step)

    monkeypatch.setattr(module, "deployed_task", lambda *_: task)
    for name in ("Client", "Inspector"):
        monkeypatch.setattr(module, name, Sender)
    assert module.let_go_on({}, waits, order_id)
    assert sent == ["accepted"], "the sleep is not needed then"
    with_sleep = replace(task, steps={"late": task.step("late")})
    monkeypatch.setattr(module, "deployed_task", lambda *_: with_sleep)
    assert module.let_go_on({}, waits, order_id)
    assert sent == ["accepted", "late"]


def test_an_item_of_a_fan_out_is_answered_as_its_step() -> None:
    module = outcomes()
    module.ANSWERS.update({"pick": 1, "pick[1]": 2, "pack": None})
    answers = [module.answer_to(step) for step in ("pick", "pick[0]", "pick[1]", "pack", "sort[0]")]
    assert answers == [1, 1, 2, None, None]

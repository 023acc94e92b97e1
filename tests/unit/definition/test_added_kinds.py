"""Kinds of steps that may be added: how they are defined, and where the added ones stand."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypedDict

import pytest

from roundsman.definition.plan import WAITS_PLAN_VERSION, SleepForPlan, SleepUntilPlan, read_plan
from roundsman.definition.workflow import (
    MOST_ADDED,
    NamedStep,
    Sleep,
    SleepUntil,
    Step,
    Workflow,
)
from roundsman.errors import DefinitionError
from roundsman.model.json import parse_json
from roundsman.model.task import AddedStep
from tests.support.machine_world import plan, step, workflow

FIND, LEG, NOTE = step("find"), step("leg"), step("note")
PAY = step("pay", FIND)
NAP = Sleep(name="nap", for_=timedelta(minutes=50))
EVE = SleepUntil("input.eve", name="eve")


class Given(TypedDict):
    """What a leg is added with."""

    to: str


@dataclass
class Opaque:
    """No input type: a set cannot be checked."""

    names: set[str]


# --- definition ----------------------------------------------------------------------------------


def test_a_plan_has_the_kinds_and_a_version_of_its_own_and_reads_back_the_same() -> None:
    made = plan(
        FIND,
        PAY,
        may_add=(LEG, replace(NOTE, input=Given)),
        most_added=7,
        point_of_no_return=PAY,
        may_add_after_no_return=(replace(NOTE, input=Given),),
    )
    document = parse_json(made.text)
    assert isinstance(document, dict)
    assert document["planVersion"] == WAITS_PLAN_VERSION
    assert read_plan(made.text) == made
    assert ([*made.kinds], made.most_added, made.kinds_after_no_return) == (
        ["leg", "note"],
        7,
        frozenset({"note"}),
    )
    assert "worker" in plan(step("a", agent="other"), may_add=(LEG,)).agents


def test_sleeps_can_be_kinds_and_the_order_is_read_for_an_instant_of_it() -> None:
    made = plan(FIND, may_add=(NAP, EVE))
    assert read_plan(made.text) == made
    assert made.kinds["nap"].awaits == SleepForPlan(50 * 60_000)
    assert made.kinds["eve"].awaits == SleepUntilPlan("input.eve")
    assert made.has_conditions
    assert not plan(FIND, may_add=(NAP,)).has_conditions
    assert NAP.named("n1").name == "nap[n1]"
    with pytest.raises(TypeError, match=r"nap\[n1\] has no agent, which would get the input"):
        NAP.named("n1", input=1)


def test_a_plan_without_kinds_keeps_its_text() -> None:
    assert "mayAdd" not in plan(FIND, PAY).text
    assert plan(FIND).kinds == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"may_add": LEG}, "may_add must be a tuple of steps"),
        ({"may_add": (FIND,)}, "two steps are named 'find'; rename one"),
        ({"may_add": (step("leg", FIND),)}, "'leg' in may_add has after; the step that adds it"),
        ({"may_add": (step("leg", when="input.a"),)}, "'leg' in may_add has when"),
        ({"may_add": (step("leg", for_each="input.a"),)}, "'leg' in may_add has for_each"),
        ({"may_add": (replace(LEG, input=int),)}, "must be a TypedDict or a dataclass"),
        ({"may_add": (replace(LEG, input=Opaque),)}, "input of 'leg' in may_add: "),
        ({"most_added": 0}, "most_added must be a whole number of at least 1"),
        ({"most_added": 1001}, f"most_added is 1001; at most {MOST_ADDED:,} steps can be added"),
        ({"may_add_after_no_return": (LEG,)}, "'leg' in may_add_after_no_return is not in may_add"),
        (
            {"may_add": (LEG,), "may_add_after_no_return": (LEG,)},
            "may_add_after_no_return needs a point_of_no_return",
        ),
        (
            {"may_add": (step("leg", complete_within=timedelta(minutes=14)),), "hour": 1},
            "may take longer than the whole workflow",
        ),
        (
            {"may_add": (NAP,), "hour": 1},
            "step 'nap' ends after sleeps of 50 min, but the whole workflow may take 10 min",
        ),
        (
            {"may_add": (replace(EVE, until="results.find.eve"),)},
            "until of 'eve' in may_add reads the result of 'find', which may come later where it "
            "is added; it can read only the input of the order",
        ),
    ],
)
def test_what_can_never_be_added_is_refused_with_a_sentence(
    change: dict[str, object], why: str
) -> None:
    within = timedelta(minutes=10) if change.pop("hour", None) else timedelta(hours=1)
    with pytest.raises(DefinitionError) as refused:
        Workflow(name="story", steps=(FIND,), complete_within=within, **change)  # type: ignore[arg-type]
    assert why in str(refused.value)


def test_only_kinds_have_an_input_of_their_own() -> None:
    with pytest.raises(DefinitionError, match="step 'find' has an input, which only kinds"):
        workflow(replace(FIND, input=Given))
    workflow(FIND, may_add=(replace(LEG, input=Given),))


@pytest.mark.parametrize("label", ["", "3", "3a", "a b", "a[b", "a/b", "x" * 41, "é"])
def test_a_name_that_cannot_be_a_part_of_a_key_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="must be 1 to 40 characters of A-Z"):
        LEG.named(label)


def test_a_named_step_has_the_name_of_its_record_and_those_before_it() -> None:
    first = LEG.named("leg-1", input={"to": "BRU"})
    second = LEG.named("Leg.2_b", after=[first, FIND, "note[x]"])
    assert (first.name, second.name) == ("leg[leg-1]", "leg[Leg.2_b]")
    assert second.after_names() == ("leg[leg-1]", "find", "note[x]")
    assert "BRU" not in repr(first), "an input may be in a log then"
    with pytest.raises(TypeError):
        LEG.named(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        LEG.named("a", after=(3,))  # type: ignore[arg-type]
    assert isinstance(first, NamedStep)


# --- where they stand ----------------------------------------------------------------------------


def after(steps: tuple[Step, ...], counts: dict[str, int], **added: str) -> dict[str, list[str]]:
    """What each step comes directly after, with legs added: `a="find after x y"`."""
    found = {
        f"leg[{label}]": AddedStep(text.split()[0], tuple(text.split()[2:]))
        for label, text in added.items()
    }
    expanded = plan(*steps, may_add=(LEG,)).expanded(counts, found)
    return {name: sorted(one.after) for name, one in expanded.steps.items()}


def test_an_added_step_stands_between_its_adder_and_what_comes_after_that() -> None:
    assert after((FIND, PAY), {}, a="find", b="leg[a]", c="find after leg[a]") == {
        "find": [],
        "leg[a]": ["find"],
        "leg[b]": ["leg[a]"],
        "leg[c]": ["find", "leg[a]", "leg[b]"],
        "pay": ["find", "leg[a]", "leg[b]", "leg[c]"],
    }


def test_one_that_names_the_step_that_added_its_adder_does_not_wait_for_itself() -> None:
    assert after((FIND,), {}, a="find", b="leg[a] after find")["leg[b]"] == ["find", "leg[a]"]


def test_items_of_a_fan_out_add_steps_and_are_named_as_a_whole() -> None:
    pick = step("pick", for_each="input.lines")
    found = after((pick, FIND, step("ship", pick)), {"pick": 2}, a="pick[1]", b="find after pick")
    assert found["leg[a]"] == ["pick[1]"]
    assert found["leg[b]"] == ["find", "leg[a]", "pick[0]", "pick[1]"]
    assert found["ship"] == ["leg[a]", "pick[0]", "pick[1]"]
    drawn = after((pick, FIND, step("ship", pick)), {}, a="pick[1]", b="find after pick")
    assert (drawn["leg[a]"], drawn["ship"]) == (["pick"], ["leg[a]", "pick"])


def test_an_expansion_is_made_once_for_a_task_and_again_from_the_stored_plan() -> None:
    made, counts = plan(FIND, PAY, may_add=(LEG,)), dict[str, int]()
    added = {"leg[a]": AddedStep("find")}
    expanded = made.expanded(counts, added)
    assert made.expanded(counts, added) is expanded
    assert expanded.expanded(counts, added) is expanded
    assert expanded.expanded({}) is made
    assert expanded.before("pay") == {"find", "leg[a]"}
    assert [*expanded.with_parts("find")] == ["find", "leg[a]"]
    assert (expanded.defined_steps, expanded.hash) == (2, made.hash)
    defined = expanded.defined("leg[a]")
    assert defined is not None
    assert (defined.name, expanded.defined("other[a]")) == ("leg", None)


def test_an_added_step_is_made_once_however_often_its_task_is_expanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = plan(FIND, PAY, may_add=(LEG,))
    first = {"leg[a]": AddedStep("find")}
    before = made.expanded({}, first).steps
    later = made.expanded({}, {**first, "leg[b]": AddedStep("leg[a]")}).steps
    assert later["leg[a]"] is before["leg[a]"]
    assert later["find"] is made.steps["find"]
    monkeypatch.setattr("roundsman.definition.plan.KEPT_ADDED_STEPS", 2)
    made.expanded({}, {"leg[c]": AddedStep("find")})
    again = made.expanded({}, dict(first)).steps
    assert again["leg[a]"] is not before["leg[a]"], "no plan keeps the steps of all tasks"
    assert again["leg[a]"] == before["leg[a]"]


def test_a_step_of_a_kind_that_the_plan_does_not_have_is_left_out() -> None:
    expanded = plan(FIND, may_add=(LEG,)).expanded({}, {"other[a]": AddedStep("find")})
    assert [*expanded.steps] == ["find"]

"""Definitions with several agents, heartbeats and fan-outs: what is refused, and how they are kept.

Each refusal is a sentence that says what to change.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypedDict

import pytest

from roundsman.definition.expressions import steps_read
from roundsman.definition.plan import plan_of, read_plan
from roundsman.definition.workflow import Step, Workflow
from roundsman.errors import DefinitionError

MINUTE = timedelta(minutes=1)


def step(name: str = "pick", **changes: Any) -> Step:  # noqa: ANN401 - wrong types on purpose
    return Step(**{"name": name, "agent": "shelves", "complete_within": MINUTE, **changes})


class Place(TypedDict):
    city: str


class Order(TypedDict):
    lines: list[str]
    place: Place


def workflow(*steps: Step, of: type[object] | None = None) -> Workflow:
    return Workflow(name="orders", input=of, steps=steps, complete_within=timedelta(hours=1))


REFUSED: list[tuple[Callable[[], object], str]] = [
    # --- several agents
    (lambda: step(agent=""), "step 'pick': agent: the name must be 1 to 40 characters of"),
    (lambda: step(agents="shelves"), r"agents must be a tuple of names, such as .*, not 'shelves'"),
    (lambda: step(agent="", agents=(1,)), r"agents must be a tuple of names"),
    (lambda: step(agents=("robots", "shelves")), "agents in order, but not both"),
    (
        lambda: step(agent="", agents=("robots", "Shelves")),
        "agent: the name must be 1 to 40 characters of",
    ),
    (lambda: step(agents=("shelves", "shelves")), "named twice in agents; remove one"),
    (
        lambda: step(agent="", agents=tuple(f"agent_{number}" for number in range(9))),
        "9 agents; at most 8 can perform one step",
    ),
    # --- heartbeats
    (lambda: step(heartbeat_within=5), "heartbeat_within must be a timedelta of at least 1 ms"),
    (lambda: step(heartbeat_within=timedelta(0)), "must be a timedelta of at least 1 ms"),
    (
        lambda: step(heartbeat_within=MINUTE / 100),
        "heartbeat_within is 0.6 s; raise it to at least",
    ),
    (
        lambda: step(heartbeat_within=MINUTE),
        "heartbeat_within must be shorter than complete_within",
    ),
    # --- fan-outs
    (lambda: step(for_each=["a"]), r"for_each must be a JMESPath expression, not \['a'\]"),
    (lambda: step(for_each="input.lines["), r"for_each is not valid JMESPath: 'input.lines\['"),
    (lambda: step(for_each="lenght(input)"), r"there is no function lenght\(\)"),
    (
        lambda: step(tolerate=0.1),
        "tolerate needs for_each; it limits how many of its items may fail",
    ),
    (lambda: step(tolerate=1), "tolerate needs for_each"),
    (
        lambda: step(for_each="input.a", tolerate=1.0),
        "tolerate is the share 1.0, which must be at least 0 and below 1; write a number of items "
        "as an int, such as 2",
    ),
    (lambda: step(for_each="input.a", tolerate=2.5), "the share 2.5, which must be at least 0"),
    (lambda: step(for_each="input.a", tolerate=-0.1), "at least 0 and below 1"),
    (lambda: step(for_each="input.a", tolerate=float("nan")), "at least 0 and below 1"),
    (lambda: step(for_each="input.a", tolerate=float("inf")), "at least 0 and below 1"),
    (
        lambda: step(for_each="input.a", tolerate=-1),
        "tolerate is -1; a number of items is from 0 to 99",
    ),
    (
        lambda: step(for_each="input.a", tolerate=100),
        "tolerate is 100; a number of items is from 0 to 99",
    ),
    (
        lambda: step(for_each="input.a", tolerate="10%"),
        "tolerate must be a number of items, such as 2, or a share of them, such as 0.1, not '10%'",
    ),
    (lambda: step(for_each="input.a", tolerate=True), "or a share of them, such as 0.1, not True"),
    (lambda: step(for_each="input.a", tolerate=None), "or a share of them, such as 0.1, not None"),
    (lambda: step("pick[0]"), "the name must be 1 to 40 characters of a-z, 0-9 and _"),
    (
        lambda: workflow(step(for_each="results.quote.offers")),
        "for_each of step 'pick' reads the result of 'quote', but no step has that name",
    ),
    (
        lambda: workflow(step("quote"), step(for_each="results.quote.offers")),
        "reads the result of 'quote', which may come later; add it to after",
    ),
    (
        lambda: workflow(step(for_each="results.pick")),
        "reads the result of 'pick', which may come later",
    ),
    # --- names that an expression reads
    (
        lambda: step(when="order.place.city == 'Ghent'"),
        "when .* reads 'order', which does not exist; there are input, results and came",
    ),
    (lambda: step(when="input.lines && total"), "when .* reads 'total', which does not exist"),
    (lambda: step(for_each="lines[?a].b"), "for_each .* reads 'lines', which does not exist"),
    (
        lambda: workflow(step(when="results.quote.ok.really")),
        "when of step 'pick' reads the result of 'quote', but no step has that name",
    ),
    (
        lambda: workflow(step("quote"), step(when="results.quote.ok")),
        "when of step 'pick' reads the result of 'quote', which may come later; add it to after",
    ),
    (
        lambda: workflow(step("quote"), step(for_each="results.quoet[0].offers")),
        "for_each of step 'pick' reads the result of 'quoet', but no step has that name",
    ),
    (lambda: step(when="!input.gift"), r"reads 'gift' of true or false.*; write !\(a\.b\)"),
    (
        lambda: workflow(step(for_each="input.place"), of=Order),
        "for_each of step 'pick' gives one value; it must give a list",
    ),
    (
        lambda: workflow(step(when="input.plaice"), of=Order),
        "when of step 'pick' reads input.plaice, which the input type does not have",
    ),
    (
        lambda: workflow(step(when="input.place.zip == '9000'"), of=Order),
        "when of step 'pick' reads input.place.zip, which the input type does not have",
    ),
    (
        lambda: workflow(step(for_each="input.liens[]"), of=Order),
        "for_each of step 'pick' reads input.liens, which the input type does not have",
    ),
    (
        lambda: workflow(step(reads=("liens",)), of=Order),
        "reads of step 'pick' has 'liens', which the input type does not have",
    ),
    (lambda: step(reads=("lines")), "reads must be a tuple of fields"),
]


@pytest.mark.parametrize(("define", "sentence"), REFUSED, ids=[case[1] for case in REFUSED])
def test_what_cannot_run_is_refused_with_a_sentence(
    define: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        define()


@pytest.mark.parametrize(
    "when",
    [
        "input.place.city == 'Ghent'",
        "input.place.[city][0]",
        "input.orderId",
        "input.lines[?@ == 'a'] || results.quote.any.thing",
        "length(@) > `1`",
    ],
)
def test_a_condition_may_read_what_there_is(when: str) -> None:
    quote = step("quote")
    made = workflow(quote, step(after=(quote,), when=when), of=Order)
    assert plan_of(made).steps["pick"].when == when


def test_a_list_that_a_step_far_before_answers_may_be_run_over() -> None:
    quote = step("quote")
    sort = step("sort", after=(quote,))
    made = workflow(quote, sort, step(after=("sort",), for_each="results.quote.offers[?best]"))
    assert plan_of(made).steps["pick"].for_each == "results.quote.offers[?best]"


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ("input.lines", set()),
        ("results.quote.offers[?a > `1`].b", {"quote"}),
        ('results."quote"[]', {"quote"}),
        ("(results.quote).offers", {"quote"}),
        ("results.quote || results.other", {"quote", "other"}),
        ("[results.a, input.b, {c: results.c}][]", {"a", "c"}),
        ("sort_by(results.a, &results.b)", {"a"}),
        ("results.a | results.b", {"a"}),
        ("input.lines[?results.b].c", set()),
        ("input.lines[].results.b", set()),
        ("results.*.offers", set()),
        ("input.results.b", set()),
    ],
)
def test_which_steps_an_expression_reads_is_seen_in_its_text(
    expression: str, read: set[str]
) -> None:
    assert steps_read(expression) == read


def test_a_step_of_several_agents_belongs_to_the_first() -> None:
    several = step(agent="", agents=("shelves", "robots"))
    assert several.agent == "shelves"
    assert several.agent_names() == ("shelves", "robots")
    assert step().agent_names() == ("shelves",)


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": "", "agents": ("shelves", "robots")},
        {"heartbeat_within": timedelta(seconds=9)},
        {"for_each": "input.lines"},
        {"for_each": "input.lines", "tolerate": 0.25},
    ],
)
def test_a_plan_that_older_code_would_run_wrongly_says_so_and_reads_back_equal(
    changes: dict[str, Any],
) -> None:
    plan = plan_of(workflow(step(**changes)))
    assert '"planVersion":2' in plan.text
    assert read_plan(plan.text) == plan
    found = plan.steps["pick"]
    assert found.agents == changes.get("agents", ("shelves",))
    assert found.heartbeat_within == (9_000 if "heartbeat_within" in changes else None)
    assert found.for_each == changes.get("for_each")
    assert found.tolerate == changes.get("tolerate", 0)


def test_a_plan_that_uses_none_of_it_keeps_the_text_and_hash_that_it_had() -> None:
    plan = plan_of(workflow(step()))
    assert '"planVersion":1' in plan.text
    for field in ("agents", "heartbeatWithin", "forEach", "tolerate"):
        assert field not in plan.text
    assert plan_of(workflow(step(agent="", agents=("shelves",)))).hash == plan.hash


@pytest.mark.parametrize("number", [1, 2, 99])
def test_a_plan_that_tolerates_a_number_of_items_is_not_read_by_code_that_expects_a_share(
    number: int,
) -> None:
    plan = plan_of(workflow(step("quote"), step(for_each="input.lines", tolerate=number)))
    assert '"planVersion":3' in plan.text
    assert f'"tolerate":{number}' in plan.text
    assert read_plan(plan.text) == plan
    assert plan.steps["pick"].tolerate == number


def test_equal_shares_give_equal_hashes() -> None:
    whole = plan_of(workflow(step(for_each="input.a", tolerate=0)))
    assert plan_of(workflow(step(for_each="input.a", tolerate=0.0))).hash == whole.hash

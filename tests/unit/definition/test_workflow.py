"""A definition that could never run is refused with a sentence that says what to change."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypedDict, cast

import pytest

from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    SleepUntil,
    Step,
    Strategy,
    Undo,
    Wait,
    Workflow,
)
from roundsman.errors import DefinitionError, RoundsmanError
from roundsman.model.priority import Priority

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ANY = cast(Any, None)


def step(name: str = "charge_card", **changes: Any) -> Step:  # noqa: ANN401 - wrong types on purpose
    return Step(**{"name": name, "agent": "payment", "complete_within": SECOND, **changes})


def workflow(*steps: Step, **changes: Any) -> Workflow:  # noqa: ANN401 - wrong types on purpose
    return Workflow(**{"name": "orders", "steps": steps, "complete_within": HOUR, **changes})


def wait(**changes: Any) -> Wait:  # noqa: ANN401 - wrong types on purpose
    return Wait(**{"delay": MINUTE, "times": 2, **changes})


def signal(of: str = "paid", **changes: Any) -> Signal:  # noqa: ANN401 - wrong types on purpose
    return Signal(of, **{"within": MINUTE, **changes})


def sleep(name: str = "nap", **changes: Any) -> Sleep:  # noqa: ANN401 - wrong types on purpose
    return Sleep(**{"name": name, "for_": MINUTE, **changes})


class Trip(TypedDict):
    legs: list[str]
    at: str


LISTED = step("reserve_stock")
NAMES = ["", "Charge", "1st", "charge-card", "charge card", "größe", "a" * 41, "charge\n", 7, None]

REFUSED: list[tuple[str, Callable[[], object], str]] = [
    # --- the order of steps
    (
        "a circle of two, by name",
        lambda: workflow(step("a", after=("b",)), step("b", after=("a",))),
        r"workflow 'orders': the steps form a cycle, so none can start first: "
        r"(a after b after a|b after a after b)",
    ),
    (
        "a circle of three names which step comes after which",
        lambda: workflow(step("a", after=("b",)), step("b", after=("c",)), step("c", after=("a",))),
        r"the steps form a cycle, so none can start first: "
        r"(a after b after c after a|b after c after a after b|c after a after b after c)",
    ),
    (
        "a circle of steps, which copies of them close",
        lambda: workflow(
            a := step("a", after=("b",)),
            step("b", after=(replace(a, retry=Retry(max_attempts=2)),)),
        ),
        r"the steps form a cycle, so none can start first: (a after b after a|b after a after b)",
    ),
    (
        "a copy of a step of the workflow",
        lambda: workflow(LISTED, step("a", after=(replace(LISTED, retry=Retry(max_attempts=2)),))),
        r"after another step 'reserve_stock' than that in steps, such as a copy; write after",
    ),
    (
        "a step after itself",
        lambda: workflow(step("a", after=("a",))),
        r"the steps form a cycle, so none can start first: a after a",
    ),
    (
        "an unknown name",
        lambda: workflow(step("a", after=("reserve",))),
        r"step 'a' comes after 'reserve', but no step has that name",
    ),
    (
        "a step that is not listed",
        lambda: workflow(step("a", after=(LISTED,))),
        r"step 'a' comes after 'reserve_stock', which is not listed in steps; add it",
    ),
    (
        "another step of a listed name",
        lambda: workflow(step("reserve_stock", agent="mail"), step("a", after=(LISTED,))),
        r"step 'a' comes after another step 'reserve_stock' than that in steps",
    ),
    (
        "two steps of one name",
        lambda: workflow(step("a"), step("b"), step("a")),
        r"two steps are named 'a'; rename one",
    ),
    (
        "after as a bare string: the forgotten comma",
        lambda: step(after="reserve_stock"),
        r"step 'charge_card': after must be a tuple of steps, .*not 'reserve_stock'",
    ),
    (
        "after as a bare step: the forgotten comma",
        lambda: step(after=LISTED),
        r"after must be a tuple of steps, such as \(charge_card,\), not Step\(",
    ),
    ("after as a list", lambda: step(after=[LISTED]), r"after must be a tuple of steps"),
    ("after with a number", lambda: step(after=(3,)), r"after must be a tuple of steps.*3"),
    # --- the workflow
    ("no steps", workflow, r"workflow 'orders': it has no steps"),
    (
        "steps as a bare step: the forgotten comma",
        lambda: workflow(steps=LISTED),
        r"workflow 'orders': steps must be a tuple of steps, .*not Step\(",
    ),
    ("no steps at all", lambda: workflow(steps=None), r"steps must be a tuple of steps.*None"),
    ("steps by name", lambda: workflow(steps=("a",)), r"steps must be a tuple of steps"),
    (
        "too many steps",
        lambda: workflow(*(step(f"s{number}") for number in range(101))),
        r"101 steps; at most 100 fit in one task",
    ),
    (
        "a step longer than the workflow",
        lambda: workflow(step(complete_within=2 * MINUTE), complete_within=MINUTE),
        r"step 'charge_card' may take longer than the whole workflow; raise the workflow's",
    ),
    ("a number of seconds", lambda: workflow(LISTED, complete_within=60), r"timedelta.*60"),
    (
        "a step longer than the deadline",
        lambda: workflow(step(complete_within=2 * MINUTE), deadline=MINUTE),
        r"step 'charge_card' may take 2 min, but the deadline is 60 s; raise the workflow's",
    ),
    (
        "a deadline of no time",
        lambda: workflow(LISTED, deadline=timedelta(0)),
        r"deadline must be a timedelta of at least 1 ms",
    ),
    (
        "no time at all",
        lambda: workflow(LISTED, complete_within=timedelta(0)),
        r"complete_within must be a timedelta of at least 1 ms",
    ),
    (
        "a time beyond the calendar",
        lambda: workflow(LISTED, complete_within=timedelta.max),
        r"complete_within is \d+ days; at most 3650",
    ),
    (
        "a retention in the past",
        lambda: workflow(LISTED, retain_for=-SECOND),
        r"retain_for must be zero or more",
    ),
    ("a retention as a number", lambda: workflow(LISTED, retain_for=5), r"retain_for must be a"),
    (
        "a retention beyond the calendar",
        lambda: workflow(LISTED, retain_for=timedelta.max),
        r"retain_for is \d+ days; at most 3650",
    ),
    (
        "a priority as text",
        lambda: workflow(LISTED, priority="urgent"),
        r"priority must be a Priority, not 'urgent'",
    ),
    (
        "a strategy without its brackets",
        lambda: workflow(LISTED, on_failure=Undo),
        r"on_failure must be Undo\(\), Archive\(\) or Wait\(\.\.\.\)",
    ),
    (
        "a point of no return by name",
        lambda: workflow(LISTED, point_of_no_return="reserve_stock"),
        r"point_of_no_return must be one of its steps",
    ),
    (
        "a point of no return elsewhere",
        lambda: workflow(LISTED, point_of_no_return=step("a")),
        r"point_of_no_return must be one of its steps",
    ),
    # --- the step
    (
        "longer than a Lambda function",
        lambda: step(complete_within=timedelta(seconds=901)),
        r"step 'charge_card': complete_within is 901 s; no Lambda function runs longer than 900 s",
    ),
    ("a time as text", lambda: step(complete_within="30s"), r"must be a timedelta.*'30s'"),
    (
        "less than a millisecond",
        lambda: step(complete_within=timedelta(microseconds=999)),
        r"at least 1 ms",
    ),
    (
        "less time than a request takes",
        lambda: step(complete_within=timedelta(milliseconds=30)),
        r"step 'charge_card': complete_within is 0\.03 s; raise it to at least 1 s: an answer",
    ),
    (
        "less time than an undo takes",
        lambda: Compensation(complete_within=timedelta(milliseconds=999)),
        r"Compensation: complete_within is 0\.999 s; raise it to at least 1 s",
    ),
    (
        "less time than a signal takes",
        lambda: Signal("paid", within=timedelta(milliseconds=30)),
        r"step 'paid': within is 0\.03 s; raise it to at least 1 s",
    ),
    (
        "steps where a tuple of steps is expected",
        lambda: step(after=[LISTED]),
        r"after must be a tuple of .*, not \[Step\(name='\w+', complete_within=[^\]]{20,60}\.\.\.$",
    ),
    ("a retry as a number", lambda: step(retry=3), r"retry must be a Retry, not 3"),
    (
        "a compensation as a function",
        lambda: step(compensation=len),
        r"compensation must be a Compensation",
    ),
    ("a strategy as text", lambda: step(on_failure="undo"), r"step.*on_failure must be Undo\(\)"),
    ("a bad expression", lambda: step(when="input.total >"), r"when is not valid JMESPath: 'input"),
    ("an unknown function", lambda: step(when="sizeof(input)"), r"there is no function sizeof"),
    ("an expression that is none", lambda: step(when=True), r"when must be a JMESPath.*True"),
    ("no room for a result", lambda: step(result_limit=0), r"result_limit must be a whole number"),
    ("a half byte", lambda: step(result_limit=0.5), r"result_limit must be a whole number"),
    ("true bytes", lambda: step(result_limit=True), r"result_limit must be a whole number"),
    (
        "too large a result",
        lambda: step(result_limit=32 * 1024 + 1),
        r"result_limit is 32769 bytes; at most 32768 fit",
    ),
    # --- retry, compensation and wait
    ("no attempts", lambda: Retry(max_attempts=0), r"Retry: max_attempts must be a whole number"),
    ("true attempts", lambda: Retry(max_attempts=True), r"whole number of at least 1, not True"),
    (
        "no time to keep trying",
        lambda: Retry(keep_trying_for=timedelta(0)),
        r"Retry: keep_trying_for must be",
    ),
    (
        "a time to keep trying as a number",
        lambda: Retry(keep_trying_for=cast(Any, 900)),
        r"Retry: keep_trying_for must be a timedelta",
    ),
    (
        "a step that is retried for as long as its workflow may take",
        lambda: workflow(step("a", retry=Retry(keep_trying_for=HOUR)), complete_within=HOUR),
        r"step 'a' is to be retried for 1 h, but the whole workflow may take 1 h; lower "
        r"keep_trying_for of its Retry, or raise the workflow's complete_within",
    ),
    (
        "attempts whose waits are longer than their workflow",
        lambda: workflow(
            step("a", retry=Retry(max_attempts=5, first_delay=HOUR, max_delay=HOUR)),
            complete_within=2 * HOUR,
        ),
        r"the waits between the 5 attempts at step 'a' take 2 h on average, but the whole workflow "
        r"may take 2 h; lower max_attempts or the delays of its Retry, or raise the workflow's",
    ),
    (
        "more attempts than any workflow has time for",
        lambda: workflow(step("a", retry=Retry(max_attempts=10**30)), complete_within=HOUR),
        r"the waits between the 10{30} attempts at step 'a' take",
    ),
    ("no delay", lambda: Retry(first_delay=timedelta(0)), r"Retry: first_delay must be"),
    ("a delay as a number", lambda: Retry(max_delay=ANY), r"Retry: max_delay must be a timedelta"),
    (
        "first longer than most",
        lambda: Retry(first_delay=HOUR),
        r"first_delay is longer than max_delay; raise max_delay",
    ),
    (
        "not_on as a bare string: the forgotten comma",
        lambda: Retry(not_on=cast(Any, "CardDeclined")),
        r'not_on must be a tuple of error types, such as \("CardDeclined",\), not \'CardDeclined\'',
    ),
    (
        "a type that is longer than what is kept of one",
        lambda: Retry(not_on=("E" * 101,)),
        r"not_on: 'EEE.*would never match; an error's type has 1 to 100 bytes",
    ),
    ("an empty type", lambda: Retry(not_on=("",)), r"not_on: '' would never match"),
    ("not_on with a class", lambda: Retry(not_on=cast(Any, (ValueError,))), r"tuple of error"),
    (
        "too long a compensation",
        lambda: Compensation(complete_within=HOUR),
        r"Compensation: complete_within is 3600 s; no Lambda",
    ),
    ("a compensation's retry", lambda: Compensation(retry=ANY), r"Compensation: retry must be"),
    ("a wait that never ends", lambda: wait(then=wait()), r"then must be Undo\(\) or Archive\(\)"),
    ("a wait for nothing", lambda: wait(delay=timedelta(0)), r"Wait: delay must be a timedelta"),
    ("a wait of zero times", lambda: wait(times=0), r"Wait: times must be a whole number"),
    ("a sleep for nothing", lambda: sleep(for_=timedelta(0)), r"'nap': for_ must be a timedelta"),
    ("a sleep in another unit", lambda: sleep(for_=timedelta(days=367)), r"367 days; at most 366"),
    ("a sleep without a name", lambda: sleep(name=""), r"the name must be 1 to 40 characters"),
    ("a sleep after nothing", lambda: workflow(sleep(after=("a",))), r"no step has that name"),
    ("a sleep's condition", lambda: sleep(when="("), r"'nap': when is not valid JMESPath"),
    ("a sleep's strategy", lambda: sleep(on_failure=1), r"on_failure must be Undo\(\), Archive"),
    (
        "a sleep as long as its workflow",
        lambda: workflow(sleep(), complete_within=MINUTE),
        r"step 'nap' ends after sleeps of 60 s, but the whole workflow may take 60 s; shorten "
        r"the sleeps or raise the workflow's complete_within",
    ),
    (
        "sleeps in a row that are too long together",
        lambda: workflow(
            sleep(), sleep("b", after=("nap",)), complete_within=HOUR, deadline=2 * MINUTE
        ),
        r"step 'b' ends after sleeps of 2 min, .* 2 min; .* raise the workflow's deadline",
    ),
    ("a wait for nothing at all", lambda: signal(within=timedelta(0)), r"'paid': within must be"),
    ("a signal without a name", lambda: Signal("", within=MINUTE), r"the name must be 1 to 40"),
    ("a signal with a bad name", lambda: signal("Paid", name="paid"), r"'paid': signal: the name"),
    ("a mask that is no bool", lambda: signal(result_masked=1), r"result_masked must be a bool"),
    (
        "a wait as long as its workflow",
        lambda: workflow(signal(), complete_within=MINUTE),
        r"step 'paid' waits 60 s for its signal, but the whole workflow may take 60 s; lower "
        r"within, or raise the workflow's complete_within",
    ),
    (
        "a wait as long as the deadline",
        lambda: workflow(signal(), complete_within=HOUR, deadline=MINUTE),
        r"step 'paid' waits 60 s .* 60 s; .* raise the workflow's deadline",
    ),
    ("no expression", lambda: SleepUntil(ANY, name="a"), r"'a': until must be a JMESPath"),
    ("no variable", lambda: SleepUntil("departure", name="a"), r"reads 'departure', which does"),
    (
        "an instant from a later step",
        lambda: workflow(step("b"), SleepUntil("results.b.at", name="a")),
        r"until of step 'a' reads the result of 'b', which may come later; add it to after",
    ),
    (
        "an instant that the input does not have",
        lambda: workflow(SleepUntil("input.departure", name="a"), input=Trip),
        r"until of step 'a' reads input\.departure, which the input type does not have",
    ),
    (
        "an instant that is a list",
        lambda: workflow(SleepUntil("input.legs", name="a"), input=Trip),
        r"until of step 'a' gives no text; it must give an instant",
    ),
    ("a wait beyond the calendar", lambda: wait(delay=timedelta.max), r"at most 3650"),
]


@pytest.mark.parametrize(
    ("define", "sentence"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_definition_that_cannot_run_is_refused_with_what_to_change(
    define: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(DefinitionError) as refusal:
        define()
    assert re.search(sentence, str(refusal.value)), str(refusal.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("what", "define"),
    [
        ("step", step),
        ("agent", lambda name: step(agent=name)),
        ("workflow", lambda name: workflow(LISTED, name=name)),
    ],
)
def test_a_name_that_does_not_fit_in_keys_queues_and_urls_is_refused(
    what: str, define: Callable[[object], object], name: object
) -> None:
    with pytest.raises(
        DefinitionError, match=f"{what}.*the name must be 1 to 40 characters of a-z, 0-9"
    ):
        define(name)


def test_a_refusal_is_one_of_roundsmans_own_errors() -> None:
    with pytest.raises(RoundsmanError):
        step("Charge")


@pytest.mark.parametrize(
    "define",
    [
        lambda: step(complete_within=timedelta(seconds=900)),
        lambda: step("a" * 40),
        lambda: step(result_limit=32 * 1024),
        lambda: workflow(*(step(f"s{number}") for number in range(100))),
        lambda: workflow(step(), complete_within=SECOND),
        lambda: workflow(LISTED, step("a", after=(LISTED,)), point_of_no_return=LISTED),
        lambda: Retry(max_attempts=1, first_delay=MINUTE, max_delay=MINUTE, not_on=()),
        lambda: workflow(
            step("a", retry=Retry(keep_trying_for=HOUR - SECOND)), complete_within=HOUR
        ),
        lambda: workflow(  # 1 s, 2 s and 4 s at most: half of that on average
            step("a", retry=Retry(max_attempts=4)), complete_within=timedelta(seconds=30)
        ),
        lambda: workflow(step("a", retry=Retry()), complete_within=timedelta(minutes=2)),
        lambda: workflow(step(on_failure=wait(then=Archive())), priority=Priority.URGENT),
        lambda: sleep(for_=timedelta(days=366)),
        lambda: workflow(sleep(), complete_within=MINUTE + SECOND),
        lambda: workflow(sleep(), sleep("b"), complete_within=MINUTE + SECOND),
        lambda: workflow(  # one of the two may be skipped
            sleep(), sleep("b", after=("nap",), when="input.long"), complete_within=2 * MINUTE
        ),
        lambda: workflow(SleepUntil("input.at", name="a"), input=Trip),
        lambda: workflow(signal(), complete_within=MINUTE + SECOND, deadline=MINUTE + SECOND),
        lambda: workflow(signal(), signal(name="b", after=("paid",)), complete_within=HOUR),
    ],
)
def test_a_definition_at_its_bounds_is_taken(define: Callable[[], object]) -> None:
    define()


def test_a_step_that_waits_for_a_signal_has_its_name_unless_it_has_another() -> None:
    assert (signal().name, signal().signal, signal().agent_names()) == ("paid", "paid", ())
    assert (signal(name="deposit").name, signal(name="deposit").signal) == ("deposit", "paid")


@pytest.mark.parametrize(
    "name",
    ["agent", "agents", "complete_within", "retry", "compensation", "for_each", "reads", "input"],
)
def test_a_sleep_has_no_agent_and_nothing_that_needs_one(name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        Sleep(**{"name": "nap", "for_": MINUTE, name: ANY})
    assert sleep().agent_names() == ()


def test_the_defaults_are_those_that_are_documented() -> None:
    plain = step()
    assert plain.retry == Retry(first_delay=SECOND, max_delay=5 * MINUTE, not_on=())
    assert (plain.retry.max_attempts, plain.retry.keep_trying_for) == (None, None)
    assert plain.compensation is None
    assert plain.when is None
    assert plain.result_limit == 32 * 1024
    assert Compensation().retry == Retry(max_attempts=8, keep_trying_for=15 * MINUTE)
    assert not Compensation().fences_late_performs
    assert workflow(plain).on_failure == Archive()
    assert workflow(plain).retain_for == timedelta(0)
    assert workflow(plain).priority is Priority.NORMAL
    assert Wait(MINUTE, 1).then == Undo()


def test_steps_given_as_a_list_are_kept_as_they_were() -> None:
    steps = [step("a"), step("b")]
    defined = workflow(steps=steps)
    steps.clear()
    assert [found.name for found in defined.steps] == ["a", "b"]


def diamonds(count: int) -> list[Step]:
    """A chain of diamonds: 2 ** count paths from the first step to the last."""
    steps = [step("s0")]
    for number in range(count):
        left = step(f"l{number}", after=(steps[-1],))
        right = step(f"r{number}", after=(steps[-1],))
        steps += [left, right, step(f"s{number + 1}", after=(left, right))]
    return steps


def test_twenty_diamonds_are_shown_compared_hashed_and_planned_without_walking_every_path() -> None:
    first, second = diamonds(20), diamonds(20)
    assert len(repr(first[-1])) < 1_000
    assert first[-1] == second[-1]
    assert hash(first[-1]) == hash(second[-1])
    ours, theirs = workflow(*first), workflow(*second)
    assert len(repr(ours)) < 61 * 1_000
    assert plan_of(ours).hash == plan_of(theirs).hash


def test_after_takes_steps_and_names_alike() -> None:
    assert step(after=(LISTED, "b")).after_names() == ("reserve_stock", "b")


def test_strategies_of_every_kind_are_taken_by_steps_and_workflows() -> None:
    strategies: tuple[Strategy, ...] = (Undo(), Archive(), Wait(MINUTE, 3))
    for strategy in strategies:
        assert workflow(step(on_failure=strategy), on_failure=strategy).on_failure == strategy

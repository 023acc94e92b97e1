"""The plan: canonical, explicit, and refused with a sentence where it is broken."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest

from roundsman.definition.input_types import Masked
from roundsman.definition.plan import (
    ArchivePlan,
    CompensationPlan,
    RetryPlan,
    SignalPlan,
    SleepForPlan,
    SleepUntilPlan,
    StepPlan,
    UndoPlan,
    WaitPlan,
    plan_of,
    read_plan,
)
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    SleepUntil,
    Step,
    Undo,
    Wait,
    Workflow,
)
from roundsman.model.json import canonical_json, sha256
from roundsman.model.priority import Priority
from roundsman.model.task import PERFORM, UNDO

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

reserve = Step(
    name="reserve",
    agent="inventory",
    complete_within=30 * SECOND,
    compensation=Compensation(fences_late_performs=True),
)
charge = Step(
    name="charge",
    agent="payment",
    complete_within=MINUTE,
    after=(reserve,),
    when="input.total > `0`",
    retry=Retry(max_attempts=5, first_delay=2 * SECOND, not_on=("CardDeclined",)),
    on_failure=Wait(10 * MINUTE, 2, then=Archive()),
)
orders = Workflow(
    name="orders",
    steps=(reserve, charge),
    complete_within=timedelta(hours=2),
    on_failure=Undo(),
    retain_for=timedelta(days=7),
    point_of_no_return=charge,
)


def test_a_plan_says_in_milliseconds_all_that_the_definition_says() -> None:
    plan = plan_of(orders)
    assert (plan.workflow, plan.complete_within, plan.retain_for) == (
        "orders",
        7200_000,
        604800_000,
    )
    assert (plan.priority, plan.point_of_no_return) == ("normal", "charge")
    assert plan.on_failure == UndoPlan()
    assert list(plan.steps) == ["reserve", "charge"]
    assert plan.steps["charge"] == StepPlan(
        name="charge",
        agents=("payment",),
        after=("reserve",),
        complete_within=60_000,
        retry=RetryPlan(5, 2_000, 300_000, ("CardDeclined",)),
        compensation=None,
        on_failure=WaitPlan(600_000, 2, ArchivePlan()),
        when="input.total > `0`",
        result_limit=32_768,
    )
    assert plan.steps["charge"].attempts == 7
    assert plan.steps["reserve"].attempts is None, "it is retried for a time"
    assert plan.has_conditions
    assert not plan_of(replace(orders, steps=(reserve,), point_of_no_return=None)).has_conditions


def test_defaults_are_explicit_so_that_a_later_default_changes_no_old_plan() -> None:
    step = plan_of(orders).steps["reserve"]
    assert step.on_failure == UndoPlan()  # the workflow's
    assert step.compensation == CompensationPlan(
        30_000, RetryPlan(8, 1_000, 300_000, (), 900_000), fences_late_performs=True
    )
    assert step.retry == RetryPlan(3, 1_000, 300_000, (), 900_000)
    text = json.loads(plan_of(orders).text)
    assert set(text) == {
        "planVersion",
        "workflow",
        "completeWithin",
        "onFailure",
        "retainFor",
        "priority",
        "pointOfNoReturn",
        "steps",
    }
    for stored in text["steps"]:
        assert set(stored) == {
            "name",
            "agent",
            "after",
            "completeWithin",
            "retry",
            "compensation",
            "onFailure",
            "when",
            "resultLimit",
        }
        given = {"maxAttempts", "firstDelay", "maxDelay", "notOn"}
        default = {"keepTryingFor"} if stored["name"] == "reserve" else set()
        assert set(stored["retry"]) == given | default


def test_a_stored_plan_without_a_time_keeps_its_hash_and_its_number_of_attempts() -> None:
    only = replace(reserve, retry=Retry(max_attempts=3), compensation=None)
    plan = plan_of(replace(orders, steps=(only,), point_of_no_return=None))
    assert "keepTryingFor" not in plan.text
    assert read_plan(plan.text).steps["reserve"].retry == RetryPlan(3, 1_000, 300_000, ())


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        (Retry(max_attempts=5), (5, 0)),
        (Retry(keep_trying_for=SECOND), (3, 1_000)),
        (Retry(max_attempts=5, keep_trying_for=SECOND), (5, 1_000)),
    ],
)
def test_what_a_retry_leaves_out_follows_from_what_it_gives(
    retry: Retry, expected: tuple[int, int]
) -> None:
    step = plan_of(
        replace(orders, steps=(replace(charge, after=(), retry=retry),), point_of_no_return=None)
    ).steps["charge"]
    assert (step.retry.max_attempts, step.retry.keep_trying_for) == expected


def test_the_retry_of_an_operation_is_that_of_the_step_or_of_its_compensation() -> None:
    undo = Compensation(retry=Retry(max_attempts=9))
    step = plan_of(
        replace(
            orders, steps=(replace(charge, after=(), compensation=undo),), point_of_no_return=None
        )
    ).steps["charge"]
    assert (step.attempts_of(PERFORM), step.attempts_of(UNDO)) == (7, 9)
    assert step.retry_of(PERFORM) is step.retry
    assert step.compensation is not None
    assert step.retry_of(UNDO) is step.compensation.retry
    patient = plan_of(orders).steps["reserve"]
    assert (patient.attempts_of(PERFORM), patient.attempts_of(UNDO)) == (None, None)
    plain = plan_of(orders).steps["charge"]
    assert plain.retry_of(UNDO) is plain.retry


def test_the_text_is_canonical_json_and_its_sha256_the_hash() -> None:
    plan = plan_of(orders)
    assert plan.text == canonical_json(json.loads(plan.text))
    assert plan.hash == sha256(plan.text)
    assert len(plan.hash) == 64


def test_a_definition_keeps_the_hash_that_earlier_releases_gave_it() -> None:
    """An order in flight finds its plan by it; a new field must not change that of others."""
    assert (
        plan_of(orders).hash == "9a1764990bf98969272008554b4b819fa82df9148c1d0db5887dd4dd27efe11a"
    )
    every = Step(
        name="every",
        agents=("one", "two"),
        complete_within=MINUTE,
        retry=Retry(keep_trying_for=MINUTE, not_on=("B", "A")),
        compensation=Compensation(complete_within=SECOND, key_lifetime=timedelta(days=1)),
        for_each="input.lines",
        heartbeat_within=SECOND,
        next_agent_on=("Full", "Closed"),
        reads=("total", "lines"),
        result_masked=True,
        probe_outlives_key=True,
    )
    kind = replace(charge, name="kind", after=(), when=None, input=Card, key_lifetime=MINUTE * 9)
    waits = (
        Sleep(name="nap", for_=MINUTE, when="input.slow"),
        SleepUntil("input.eve", name="eve", on_failure=Archive()),
        Signal("paid", within=MINUTE, result_masked=True),
    )
    most = replace(
        orders,
        steps=(reserve, charge, every, *waits),
        deadline=timedelta(hours=1),
        masked=("pin",),
        may_add=(kind,),
        may_add_after_no_return=(kind,),
        most_added=9,
    )
    assert plan_of(most).hash == "e9145794848603cfc601047d8effb836a44204fe3602fc235ac8e2b170464921"


def test_a_plan_read_from_its_text_is_the_same_plan() -> None:
    plan = plan_of(orders)
    assert read_plan(plan.text) == plan
    assert read_plan(plan.text).hash == plan.hash


def test_equal_definitions_give_the_same_hash_whatever_the_order_of_their_fields() -> None:
    again = Workflow(
        retain_for=timedelta(hours=168),
        on_failure=Undo(),
        point_of_no_return=charge,
        complete_within=timedelta(minutes=120),
        steps=[
            Step(
                complete_within=timedelta(milliseconds=30_000),
                compensation=Compensation(
                    fences_late_performs=True,
                    retry=Retry(max_attempts=8, keep_trying_for=timedelta(minutes=15)),
                ),
                agent="inventory",
                name="reserve",
            ),
            replace(charge, after=("reserve",)),
        ],
        name="orders",
    )
    assert plan_of(again).hash == plan_of(orders).hash


def changed(step: Step, **changes: Any) -> Workflow:  # noqa: ANN401 - any field of a step
    steps = tuple(replace(s, **changes) if s is step else s for s in orders.steps)
    by_name = tuple(replace(s, after=s.after_names()) for s in steps)
    return replace(orders, steps=by_name, point_of_no_return=by_name[-1])


CHANGES = [
    replace(orders, name="others"),
    replace(orders, complete_within=timedelta(hours=3)),
    replace(orders, on_failure=Archive()),
    replace(orders, on_failure=Wait(MINUTE, 1)),
    replace(orders, retain_for=timedelta(0)),
    replace(orders, priority=Priority.URGENT),
    replace(orders, point_of_no_return=None),
    replace(orders, point_of_no_return=reserve),
    changed(reserve, name="reserve", agent="stock"),
    changed(reserve, complete_within=31 * SECOND),
    changed(reserve, compensation=None),
    changed(reserve, compensation=Compensation()),
    changed(reserve, compensation=Compensation(complete_within=MINUTE, fences_late_performs=True)),
    changed(reserve, result_limit=1024),
    changed(reserve, result_masked=True),
    replace(orders, masked=("card.number",)),
    replace(orders, search=("input.card.number",)),
    changed(reserve, reads=()),
    changed(reserve, reads=("lines", "total")),
    changed(reserve, when="input.total"),
    changed(reserve, on_failure=Archive()),
    changed(charge, after=()),
    changed(charge, when=None),
    changed(charge, on_failure=Wait(10 * MINUTE, 3, then=Archive())),
    changed(charge, on_failure=Wait(11 * MINUTE, 2, then=Archive())),
    changed(charge, on_failure=Wait(10 * MINUTE, 2)),
    changed(charge, retry=Retry(max_attempts=5, first_delay=2 * SECOND)),
    changed(charge, retry=replace(charge.retry, max_attempts=4)),
    changed(charge, retry=replace(charge.retry, first_delay=SECOND)),
    changed(charge, retry=replace(charge.retry, max_delay=MINUTE)),
]


class Card(TypedDict):
    number: Annotated[str, Masked()]
    expiry: str


class Order(TypedDict):
    card: Card


def test_masked_fields_travel_with_the_plan_and_are_read_again() -> None:
    def made(order: Order) -> Order:
        return order

    for given in (Order, made):
        steps = (replace(reserve, result_masked=True),)
        workflow = Workflow(
            name="orders",
            steps=steps,
            complete_within=timedelta(hours=2),
            input=given,
            masked=("card.expiry",),
        )
        plan = read_plan(plan_of(workflow).text)
        assert plan.masked == ("card.expiry", "card.number")
        assert plan.steps["reserve"].result_masked
        assert plan.masks
        assert json.loads(plan.text)["planVersion"] == 1, "older code ignores what is masked"


def test_masked_fields_of_what_a_step_is_added_with_travel_with_the_plan() -> None:
    kind = replace(reserve, name="kind", after=(), compensation=None, input=Card)
    made = plan_of(replace(orders, may_add=(kind,)))
    for plan in (made, read_plan(made.text)):
        assert plan.kinds["kind"].input_masked == ("number",)
        assert plan.masks
    plain = plan_of(replace(orders, may_add=(replace(kind, input=None),)))
    assert "inputMasked" not in plain.text


def test_a_plan_without_masked_fields_has_no_word_about_them() -> None:
    plan = plan_of(orders)
    assert "asked" not in plan.text
    assert (plan.masked, plan.masks) == ((), False)
    only_a_result = changed(reserve, result_masked=True)
    assert plan_of(only_a_result).masks


def test_the_lifetime_of_a_key_is_read_again_and_a_plan_without_it_has_no_word_about_it() -> None:
    assert "keyLifetime" not in plan_of(orders).text
    short = replace(reserve, compensation=Compensation(key_lifetime=timedelta(days=1)))
    made = plan_of(replace(orders, steps=(short,), point_of_no_return=None))
    for plan in (made, read_plan(made.text)):
        assert plan.steps["reserve"].key_lifetime == 86_400_000
    with pytest.raises(ValueError, match="'a day' where a int"):
        read_plan(made.text.replace("86400000", '"a day"'))


def test_every_change_of_a_definition_gives_another_hash() -> None:
    hashes = {plan_of(workflow).hash for workflow in [orders, *CHANGES]}
    assert len(hashes) == len(CHANGES) + 1


def test_a_step_that_reads_some_fields_needs_code_that_knows_that() -> None:
    made = plan_of(changed(reserve, reads=("total", "lines", "total")))
    document = json.loads(made.text)
    assert document["planVersion"] == 3
    assert [step.get("reads") for step in document["steps"]] == [["lines", "total"], None]
    assert read_plan(made.text) == made
    assert made.steps["reserve"].reads == ("lines", "total")


def test_what_comes_later_than_a_step_is_all_that_it_comes_before() -> None:
    plan = plan_of(orders)
    for name in plan.steps:
        assert plan.later(name) == [one for one in plan.steps if name in plan.before(one)]
    assert any(map(plan.later, plan.steps))


def broken(change: Callable[[dict[str, Any]], object]) -> str:
    document: dict[str, Any] = json.loads(plan_of(orders).text)
    change(document)
    return canonical_json(document)


def test_a_plan_with_a_sleep_has_a_version_of_its_own_and_no_agent_for_it() -> None:
    first = Sleep(name="first", for_=timedelta(days=1), when="input.slow", on_failure=Undo())
    until = SleepUntil("input.departure", name="until", after=(first,))
    made = replace(orders, steps=(first, until), point_of_no_return=None)
    plan = plan_of(replace(made, complete_within=timedelta(days=2)))
    document = json.loads(plan.text)
    assert document["planVersion"] == 5
    assert document["steps"] == [
        {
            "name": "first",
            "after": [],
            "onFailure": {"kind": "undo"},
            "when": "input.slow",
            "sleepsFor": 86_400_000,
        },
        {
            "name": "until",
            "after": ["first"],
            "onFailure": document["onFailure"],
            "when": None,
            "sleepsUntil": "input.departure",
        },
    ]
    assert read_plan(plan.text) == plan
    one, other = plan.steps.values()
    assert (one.sleeps, one.awaits) == (True, SleepForPlan(86_400_000))
    assert (other.sleeps, other.awaits) == (True, SleepUntilPlan("input.departure"))
    assert (one.agents, one.agent, one.compensation) == ((), "", None)
    assert plan.agents == frozenset()
    assert plan.has_conditions


def test_a_plan_with_a_signal_has_a_version_of_its_own_and_no_agent_for_it() -> None:
    paid = Signal("paid", name="deposit", within=timedelta(days=1), on_failure=Undo())
    masked = Signal("paid", name="rest", within=timedelta(days=1), result_masked=True)
    longer = replace(orders, complete_within=timedelta(days=2))
    plan = plan_of(replace(longer, steps=(paid, masked), point_of_no_return=None))
    document = json.loads(plan.text)
    assert document["planVersion"] == 5
    first, second = document["steps"]
    assert first == {
        "name": "deposit",
        "after": [],
        "onFailure": {"kind": "undo"},
        "when": None,
        "signal": "paid",
        "within": 86_400_000,
    }
    assert second["resultMasked"] is True
    assert read_plan(plan.text) == plan
    one, other = plan.steps.values()
    assert (one.awaits, one.signal, one.result_masked) == (
        SignalPlan("paid", 86_400_000),
        "paid",
        False,
    )
    assert (one.sleeps, one.agents, one.result_limit) == (False, (), 4_096)
    assert other.result_masked
    assert plan.masks
    assert not plan.has_conditions


def test_only_a_plan_with_a_deadline_has_the_version_that_older_code_does_not_read() -> None:
    plan = plan_of(replace(orders, deadline=timedelta(hours=3)))
    assert plan.deadline == 10_800_000
    assert json.loads(plan.text)["deadline"] == 10_800_000
    assert json.loads(plan.text)["planVersion"] == 4
    assert read_plan(plan.text) == plan
    without = json.loads(plan_of(orders).text)
    assert plan_of(orders).deadline is None
    assert ("deadline" in without, without["planVersion"]) == (False, 1)


BROKEN = [
    (broken(lambda d: d.update(deadline="1")), "'1' where a int is expected"),
    ("", "the text is empty"),
    ("{", "the text ends too early"),
    ("[]", "where a dict is expected"),
    ("null", "None where a dict is expected"),
    (broken(lambda d: d["steps"][0].update(sleepsFor="1")), "'1' where a int is expected"),
    (broken(lambda d: d["steps"][0].update(sleepsUntil=1)), "1 where a str is expected"),
    ("NaN", "NaN is not a number of JSON"),
    ("{}", "plan version None; this code reads 1 to 7"),
    (broken(lambda d: d.update(planVersion=8)), "plan version 8; this code reads 1 to 7"),
    (broken(lambda d: d.pop("steps")), "the plan has no 'steps'"),
    (broken(lambda d: d.pop("retainFor")), "the plan has no 'retainFor'"),
    (broken(lambda d: d["steps"][0].pop("retry")), "the plan has no 'retry'"),
    (broken(lambda d: d["steps"][0].update(after="b")), "'b' where a list is expected"),
    (broken(lambda d: d["steps"][0].update(after=[1])), "1 where a str is expected"),
    (broken(lambda d: d["steps"][0].update(after=["b"])), "after 'b', but no step with that name"),
    (broken(lambda d: d["steps"][0].update(completeWithin="30")), "'30' where a int is expected"),
    (broken(lambda d: d["steps"][0].update(completeWithin=True)), "True where a int is expected"),
    (broken(lambda d: d["steps"][0].update(when=3)), "3 where a str is expected"),
    (broken(lambda d: d["steps"][0].update(retry=[])), "where a dict is expected"),
    (broken(lambda d: d["steps"][0].update(name="charge")), "two steps with the same name"),
    (broken(lambda d: d.update(steps=[])), "no steps"),
    (broken(lambda d: d.update(steps=["reserve"])), "'reserve' where a dict is expected"),
    (broken(lambda d: d.update(priority="asap")), "'asap' is not a valid Priority"),
    (broken(lambda d: d.update(onFailure={"kind": "panic"})), "unknown strategy 'panic'"),
    (broken(lambda d: d.update(onFailure={})), "the plan has no 'kind'"),
    (
        broken(lambda d: d["steps"][1]["onFailure"].update(then=d["steps"][1]["onFailure"].copy())),
        "the plan has a wait after a wait",
    ),
    ("[" * 100_000, "nested deeper than 24 levels"),
]


@pytest.mark.parametrize(("text", "sentence"), BROKEN, ids=[case[1] for case in BROKEN])
def test_a_broken_plan_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_plan(text)

"""Taking back many completed orders: which ones a filter selects, and which ones are refused."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

import pytest

from roundsman.definition.plan import Plan
from roundsman.engine.bulk_eligibility import CHANGED, GONE
from roundsman.model.instants import DAY, MINUTE
from roundsman.model.task import Task
from roundsman_console.acts.bulk import dry_run
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.lookup import plan_of
from tests.console.bulk_stories import names, states
from tests.console.operators import CHARGED_LATER, Operator, document
from tests.moto.orders import order

FILTER = (
    *("--state", "Completed", "--workflow", "order_fulfilment"),
    *("--older", "1m", "--newer", "1h"),
)


def completed(operator: Operator, count: int) -> None:
    """So many completed orders, which were submitted two minutes ago."""
    for name in names(count):
        operator.world.submit(order(name))
    operator.world.run()
    assert states(operator, names(count)) == ["Completed"] * count
    operator.world.clock.now += 2 * MINUTE


def refused(found: Mapping[str, object]) -> dict[str, list[str]]:
    """The first orders that are refused, by reason."""
    listed = found["refused"]
    assert isinstance(listed, list)
    return {one["reason"]: one["samples"] for one in listed}


def goes_ahead(operator: Operator, found: Mapping[str, object], *more: str) -> dict[str, object]:
    """What comes of the command that a dry run prints."""
    _, *words = shlex.split(str(found["goAhead"]))
    return document(operator.types(*words, "--yes", "--json", *more))


@pytest.mark.exhaustive
def test_the_run_is_over_the_orders_of_its_dry_run_however_late_it_begins(
    operator: Operator,
) -> None:
    world = operator.world
    world.faults(CHARGED_LATER)
    world.submit(order("ord-slow"))
    world.run()
    world.faults()
    completed(operator, 3)
    world.submit(order("ord-new"))
    world.run()
    shown = document(operator.asks("undo", *FILTER, "--json"))
    assert (shown["selected"], shown["lookedAt"]) == (3, 3)
    assert shown["eligible"] == {"orders": 3, "samples": names(3)}
    assert shown["examined"] >= 4, "the new one was examined as well"  # type: ignore[operator]
    printed = operator.asks("undo", *FILTER).stdout
    assert f"Examined to find them: {shown['examined']} tasks, at least 4 read units." in printed
    world.clock.now += 20 * MINUTE
    world.pass_time(60)
    ends = [*names(3), "ord-slow", "ord-new"]
    assert states(operator, ends) == ["Completed"] * 5
    again = document(operator.asks("undo", *FILTER, "--json"))
    assert again["selected"] == 5, "a dry run of now has what is in the span now"
    run = goes_ahead(operator, shown)
    assert (run["state"], run["selected"], run["undone"]) == ("finished", 3, 3)
    assert "--as-of 20" in str(run["selection"])
    assert states(operator, ends) == ["Undone"] * 3 + ["Completed"] * 2


@pytest.mark.exhaustive
def test_an_order_that_changes_after_the_run_is_planned_is_refused_and_listed(
    operator: Operator,
) -> None:
    completed(operator, 3)
    shown = document(operator.asks("undo", *FILTER, "--json"))
    run_id = str(goes_ahead(operator, shown, "--no-wait")["runId"])
    part = ("--steps", "create_shipment,send_confirmation", "--no-wait")
    assert operator.asks("undo", "ord-2", *part).exit_code == 0
    operator.world.run()
    operator.world.pass_time(300)
    found = operator.reads("bulk", "show", run_id, "--orders")
    assert (found["state"], found["undone"]) == ("finished", 2)
    assert found["orders"] == [{"orderId": "ord-2", "result": "refused", "sentence": CHANGED}]
    assert states(operator, names(3)) == ["Undone", "Completed", "Undone"]


@pytest.mark.exhaustive
def test_a_dry_run_counts_what_cannot_be_taken_back_by_its_reason(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    completed(operator, 5)

    def with_keys_of(plan: Plan, lifetime: int | None) -> Plan:
        """The plan in which the keys of all compensations have this lifetime, in ms."""
        return replace(
            plan,
            steps={
                name: replace(step, key_lifetime=lifetime if step.compensation else None)
                for name, step in plan.steps.items()
            },
        )

    def own_plan(stack: DeployedStack, task: Task) -> Plan | None:
        plan = plan_of(stack, task)
        assert plan is not None
        match task.task_id:
            case "ord-1":
                return replace(plan, point_of_no_return="charge_card")
            case "ord-2":
                without = {
                    name: replace(step, compensation=None) for name, step in plan.steps.items()
                }
                return replace(plan, steps=without)
            case "ord-3":
                return with_keys_of(plan, 3 * MINUTE)
            case _:
                return with_keys_of(plan, 60 * MINUTE)

    monkeypatch.setattr(dry_run, "plan_of", own_plan)
    shown = document(operator.asks("undo", *FILTER, "--json"))
    assert shown["eligible"] == {"orders": 2, "samples": ["ord-4", "ord-5"]}
    expired = (
        "the key of charge_card has expired, so its service may not find the effect any more: "
        "undo this order by itself, and look at the service"
    )
    assert refused(shown) == {
        "the task is completed, past its point of no return, charge_card": ["ord-1"],
        "the task is completed, and no step that was performed has a compensation": ["ord-2"],
        expired: ["ord-3"],
    }
    run = goes_ahead(operator, shown)
    assert run["undone"] == 5, "the supervisor decides by the plans that are stored"


@pytest.mark.exhaustive
def test_completed_orders_that_are_named_are_taken_back_and_what_is_not_kept_is_refused(
    operator: Operator,
) -> None:
    completed(operator, 1)
    operator.world.clock.now += 8 * DAY
    operator.world.submit(order("ord-2"), order("ord-3"))
    operator.world.run()
    operator.world.clock.now += MINUTE
    shown = document(operator.asks("undo", *names(3), "--json"))
    assert shown["eligible"] == {"orders": 2, "samples": ["ord-2", "ord-3"]}
    assert (refused(shown), shown["examined"]) == ({GONE: ["ord-1"]}, 0)
    run = document(operator.asks("undo", *names(3), "--go", "--json"))
    assert (run["undone"], refused(run)) == (2, {GONE: ["ord-1"]})
    unknown = operator.asks("undo", "ord-2", "ord-99", "--go")
    assert (unknown.exit_code, "There is no order ord-99" in unknown.stderr) == (3, True)


@pytest.mark.exhaustive
def test_an_order_that_is_under_way_when_it_is_named_and_completes_is_not_taken_back(
    operator: Operator,
) -> None:
    world = operator.world
    completed(operator, 1)
    world.faults(CHARGED_LATER)
    world.submit(order("ord-2"))
    world.run()
    slowly = ("--go", "--canary", "0", "--rate", "0.001", "--no-wait", "--json")
    run_id = str(document(operator.asks("undo", "ord-1", "ord-2", *slowly))["runId"])
    world.pass_time(1_200)
    found = operator.reads("bulk", "show", run_id, "--orders")
    assert (found["state"], found["undone"]) == ("finished", 1)
    assert states(operator, names(2)) == ["Undone", "Completed"]


@pytest.mark.exhaustive
def test_an_open_order_that_is_named_with_completed_ones_is_undone_as_it_then_is(
    operator: Operator,
) -> None:
    world = operator.world
    completed(operator, 1)
    world.faults(CHARGED_LATER)
    world.submit(order("ord-2"))
    world.run()
    run = document(operator.asks("undo", "ord-1", "ord-2", "--go", "--no-wait", "--json"))
    assert operator.asks("extend", "ord-2", "--by", "1h", "--no-wait").exit_code == 0
    world.run()
    world.pass_time(300)
    assert operator.reads("bulk", "show", str(run["runId"]))["undone"] == 2
    assert states(operator, names(2)) == ["Undone", "Undone"]

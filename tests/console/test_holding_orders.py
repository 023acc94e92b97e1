"""Holding the orders of a workflow or all of them, and letting them go on in shares."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from roundsman.model.holds import EVERY_WORKFLOW, OPERATOR, Hold, is_in_share
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.states import TaskState
from roundsman.model.task import Termination
from roundsman_console.acts.hold import watch
from roundsman_console.faces.cli import confirm
from roundsman_testing.stack import MORNING
from tests.console.operators import Operator, at_each_call, document, holds_of
from tests.console.test_holding import commands, inspect, refuse, waits_for_payment
from tests.moto.orders import order

HALF_AN_HOUR = 30 * 60_000
EVERYTHING = Hold(
    "", OPERATOR, MORNING, MORNING + HALF_AN_HOUR, "routine", "ops", workflow=EVERY_WORKFLOW
)
OF_BEN = replace(EVERYTHING, by="ben", reason="mine")


@pytest.fixture
def waiting(operator: Operator) -> Operator:
    """Forty orders wait, and everything is on hold."""
    hold_all(operator)
    waits_for_payment(operator, *(f"ord-{number}" for number in range(40)), held_for=EVERY_ORDER)
    commands(operator)
    return operator


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody sleeps: a pause moves the time that a watch measures."""
    slept: list[float] = []
    monkeypatch.setattr(watch, "pause", slept.append)
    monkeypatch.setattr(watch, "moment", lambda: sum(slept))
    return slept


def listed(found: object) -> list[dict[str, object]]:
    """The elements of a list of a document."""
    assert isinstance(found, list)
    return found


def hold_all(operator: Operator, *more: str) -> None:
    result = operator.asks("hold", "--all", "--for", "30m", *more)
    assert result.exit_code == 0, result.output


def fails(operator: Operator, *names: str) -> None:
    """These orders have failed, and are in one failure group."""
    for name in names:
        task = operator.world.task(name)
        ended = replace(
            task,
            version=task.version + 1,
            state=TaskState.ARCHIVED,
            ending=Termination(TaskState.ARCHIVED, "declined"),
            ended_at=operator.world.clock(),
            failure="f-0000aaaa",
        )
        operator.world.store.save(ended, seen=task.version)


# ---- hold ---------------------------------------------------------------------------------------


def test_a_hold_on_everything_is_stored_and_says_what_follows(operator: Operator) -> None:
    result = operator.asks("hold", "--all", "--for", "30m")
    assert result.exit_code == 0, result.output
    first, *rest = result.stdout.splitlines()
    assert first == "Everything is held by ops until 2027-01-15T08:30:00Z: routine."
    for words in ("New orders are accepted and wait", "Undos go on", "roundsman release --all"):
        assert words in " ".join(rest)
    assert holds_of(operator.world).holds() == [EVERYTHING]


def test_a_hold_on_a_workflow_may_hold_undos_too(operator: Operator) -> None:
    result = operator.asks("hold", "--workflow", "order_fulfilment", "--for", "30m", "--undos-too")
    assert "Undos wait too." in result.stdout
    assert "roundsman release --workflow order_fulfilment" in result.stdout
    (stored,) = holds_of(operator.world).holds()
    assert (stored.workflow, stored.undos, stored.agent) == ("order_fulfilment", True, "")


def test_a_hold_as_json_is_one_object(operator: Operator) -> None:
    printed = document(operator.asks("hold", "--all", "--for", "30m", "--json"))
    held: dict[str, object] = {
        "since": "2027-01-15T08:00:00.000Z",
        "until": "2027-01-15T08:30:00.000Z",
        "by": "ops",
        "reason": "routine",
        "passes": [],
        "workflow": None,
        "undosToo": False,
        "released": 0,
    }
    assert printed == {
        "agent": None,
        "workflow": None,
        "command": "hold",
        "outcome": "done",
        "hold": held,
        "replaced": None,
        "unknownWorkflow": False,
    }
    assert document(operator.asks("hold", "--all", "--for", "1h", "--json"))["replaced"] == held


def test_a_workflow_that_no_open_order_has_is_named_with_those_that_there_are(
    operator: Operator,
) -> None:
    waits_for_payment(operator, "ord-1")
    result = operator.asks("hold", "--workflow", "order_fulfillment", "--for", "30m")
    assert "No open order of order_fulfillment was found: check the name." in result.stdout
    assert "Open orders are of order_fulfilment." in result.stdout
    right = operator.asks("hold", "--workflow", "order_fulfilment", "--for", "30m")
    assert "check the name" not in right.stdout


def test_a_hold_on_a_workflow_stands_though_its_orders_cannot_be_read(operator: Operator) -> None:
    waits_for_payment(operator, "ord-1")
    with at_each_call("dynamodb.Query", refuse):
        result = operator.asks("hold", "--workflow", "other", "--for", "30m")
    assert result.exit_code == 0, result.output
    assert "check the name" not in result.stdout
    assert len(holds_of(operator.world).holds()) == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "Give exactly one of AGENT, --workflow NAME and --all."),
        (("payment", "--all"), "Give exactly one of"),
        (("--workflow", "a", "--all"), "Give exactly one of"),
        (("payment", "--undos-too"), "--undos-too goes with --workflow or --all."),
        (("--workflow", "Not A Name"), "is not the name of a workflow"),
        (("--workflow", "*"), "is not the name of a workflow"),
        (("--workflow", ""), "is not the name of a workflow"),
    ],
)
def test_a_target_that_is_not_one_is_refused(
    operator: Operator, given: tuple[str, ...], sentence: str
) -> None:
    result = operator.asks("hold", *given, "--for", "30m")
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert holds_of(operator.world).holds() == []


def test_the_question_says_what_is_held_and_for_how_long(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    result = operator.types("hold", "--all", "--for", "30m", "--reason", "x", answer="n\n")
    assert "Hold everything for 30 min? [y/N]" in result.stderr
    assert (result.exit_code, holds_of(operator.world).holds()) == (1, [])


def test_the_other_operators_are_alerted_of_the_hold_and_of_each_share(operator: Operator) -> None:
    alerts = operator.world.alert_queue()
    hold_all(operator)
    for share in ("10", "100"):
        result = operator.types("release", "--all", "--share", share, "--as", "amy")
        assert result.exit_code == 0, result.output
    held, some, all_of_it = (
        json.loads(json.loads(body)["Message"]) for body in operator.world.bodies(alerts)
    )
    assert (held["alert"], held["workflow"], held["by"]) == ("orders_held", None, "ops")
    assert held["do"]["release"] == "roundsman release --all"
    assert (some["alert"], some["share"], some["by"]) == ("orders_released", 10, "amy")
    assert "10 % of the orders go on" in some["summary"]
    assert (all_of_it["share"], "all orders go on" in all_of_it["summary"]) == (100, True)


# ---- what people see ----------------------------------------------------------------------------


def test_agents_and_ls_say_what_is_held_and_what_lets_it_go_on(operator: Operator) -> None:
    hold_all(operator)
    for command in ("agents", "ls"):
        shown = operator.types(command).stdout
        assert "Everything is held by ops until 2027-01-15T08:30:00Z: routine." in shown
        assert "Let go on: roundsman release --all" in shown
    [held] = listed(operator.reads("agents")["orderHolds"])
    assert held["workflow"] is None
    assert "release" not in operator.types("ls", "--json").stdout


def test_why_show_and_alerts_name_the_hold_on_the_order(operator: Operator) -> None:
    hold_all(operator)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    held = "everything is held by ops: routine, until 2027-01-15T08:30:00Z"
    shown = " ".join(operator.types("show", "ord-1").stdout.split())
    assert held in shown
    assert "Let go on: roundsman release --all" in shown
    why = operator.reads("why", "ord-1")
    assert why["sentence"] == f"ord-1 waits for the end of a hold, for reserve_stock: {held}."
    assert (why["case"], why["next"]) == ("held", "roundsman release --all")
    [alert] = [one for one in listed(operator.reads("alerts")["alerts"]) if one["kind"] == "hold"]
    assert (alert["about"], alert["severity"]) == ("everything", "warning")
    assert alert["next"] == "roundsman release --all"


def test_a_hold_on_another_workflow_is_not_named(operator: Operator) -> None:
    operator.asks("hold", "--workflow", "other", "--for", "30m")
    waits_for_payment(operator, "ord-1")
    assert "workflow other" not in operator.types("why", "ord-1").stdout


# ---- release ------------------------------------------------------------------------------------


def test_a_release_of_all_ends_the_hold_and_wakes_what_waits(operator: Operator) -> None:
    hold_all(operator)
    waits_for_payment(operator, "ord-2", held_for=EVERY_ORDER)
    commands(operator)
    result = operator.types("release", "--all", "--as", "amy", "--reason", "it is over")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "Everything is released by amy: it is over.\n"
        "1 task that waits: woken from 2027-01-15T08:00:11Z on, 30 per second.\n"
    )
    assert holds_of(operator.world).holds() == []
    operator.world.clock.now += 12_000
    assert commands(operator) == [inspect("ord-2")]


@pytest.mark.exhaustive
def test_a_share_wakes_only_its_own_orders_and_the_next_only_the_others(waiting: Operator) -> None:
    orders = {f"ord-{number}" for number in range(40)}
    ten = {name for name in orders if is_in_share(name, 10)}
    half = {name for name in orders if is_in_share(name, 50)}
    assert ten < half < orders
    result = waiting.types("release", "--all", "--share", "10")
    assert "10 % of the orders go on" in result.stdout
    assert "roundsman release --all --share 100" in result.stdout
    assert holds_of(waiting.world).holds() == [replace(EVERYTHING, released=10)]
    waiting.world.clock.now += 20_000
    assert set(commands(waiting)) == {inspect(name) for name in ten}
    waiting.types("release", "--all", "--share", "50%")
    waiting.world.clock.now += 20_000
    assert {inspect(name) for name in half - ten} <= set(commands(waiting))
    shown = waiting.types("agents").stdout.replace("\n", " ")
    assert "except 50 % of the orders" in shown
    assert "orders go on already" in waiting.types("release", "--all", "--share", "50").stderr


@pytest.mark.exhaustive
def test_a_share_in_which_few_fail_stays_released(waiting: Operator, quick: list[float]) -> None:
    fails(waiting, "ord-1")
    result = waiting.types("release", "--all", "--watch", "1m")
    assert result.exit_code == 0, result.output
    assert "0 of 39 woken orders failed within 60 s." in result.stdout.replace("\n", " ")
    assert sum(quick) == 60
    assert holds_of(waiting.world).holds() == []


@pytest.mark.exhaustive
def test_what_failed_before_the_release_does_not_count_against_it(waiting: Operator) -> None:
    for number in range(30):
        task = waiting.world.task(f"ord-{number}")
        retried = replace(task, version=task.version + 1, failure="f-0000aaaa")
        waiting.world.store.save(retried, seen=task.version)
    result = waiting.types("release", "--all", "--watch", "30s")
    assert result.exit_code == 0, result.output
    shown = result.stdout.replace("\n", " ")
    assert "40 tasks that wait: woken" in shown
    assert "0 of 10 woken orders failed" in shown


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", ["50", "100"])
def test_a_share_of_which_too_many_fail_is_held_again(
    waiting: Operator, monkeypatch: pytest.MonkeyPatch, share: str
) -> None:
    orders = [f"ord-{number}" for number in range(40)]
    mine = [name for name in orders if is_in_share(name, int(share))]
    most = len(mine) * 3 // 10

    def later(_: float) -> None:
        fails(waiting, *mine[:most])
        monkeypatch.setattr(watch, "pause", lambda _: pytest.fail("it is over"))

    monkeypatch.setattr(watch, "pause", later)
    result = waiting.types("release", "--all", "--share", share, "--as", "amy")
    assert result.exit_code == 1, result.output
    shown = result.stdout.replace("\n", " ")
    assert f"{most} of {len(mine)} woken orders failed (failure groups f-0000aaaa)" in shown
    assert "more than 20%. The release goes no further: everything is held until" in shown
    (again,) = holds_of(waiting.world).holds()
    assert (again.released, again.by, again.workflow) == (0, "amy", EVERY_WORKFLOW)
    assert again.until == waiting.world.clock() + HALF_AN_HOUR
    assert again.reason == (
        f"{most} of {len(mine)} orders failed after the release; before: routine"
    )


@pytest.mark.exhaustive
def test_the_limit_of_failures_can_be_set_and_the_outcome_is_in_the_json(
    waiting: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "pause", lambda _: fails(waiting, "ord-3"))
    result = waiting.types("release", "--all", "--stop-at", "0%", "--json")
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["outcome"], printed["share"]) == (1, "heldAgain", 100)
    watched = printed["watched"]
    assert (watched["orders"], watched["failed"], watched["groups"]) == (40, 1, ["f-0000aaaa"])
    assert watched["heldAgain"]["released"] == 0


@pytest.mark.exhaustive
def test_orders_stay_released_if_watching_them_is_interrupted(
    waiting: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(waiting, "ord-3")

    def loses_patience(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "pause", loses_patience)
    result = waiting.types("release", "--all", "--watch", "1m")
    assert result.exit_code == 0, result.output
    assert "The orders are watched no longer; they stay released." in result.stderr
    assert "0 of 39 woken orders failed" in result.stdout.replace("\n", " ")
    assert holds_of(waiting.world).holds() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", ["50", "100"])
def test_a_hold_that_another_operator_places_while_the_release_is_watched_is_left_alone(
    waiting: Operator, monkeypatch: pytest.MonkeyPatch, share: str
) -> None:
    def meanwhile(_: float) -> None:
        holds_of(waiting.world).hold(OF_BEN)
        fails(waiting, *(f"ord-{number}" for number in range(40)))

    monkeypatch.setattr(watch, "pause", meanwhile)
    result = waiting.types("release", "--all", "--share", share)
    assert result.exit_code == 1
    assert "another operator has changed the hold" in result.stdout.replace("\n", " ")
    assert holds_of(waiting.world).holds() == [OF_BEN]


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", ["50", "100"])
def test_a_hold_that_is_placed_at_the_same_moment_is_not_released(
    waiting: Operator, share: str
) -> None:
    with at_each_call("dynamodb.UpdateItem", ben_is_first(waiting)):
        result = waiting.types("release", "--all", "--share", share)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Another operator has changed the hold since it was read" in result.stderr
    assert holds_of(waiting.world).holds() == [OF_BEN]
    assert commands(waiting) == []


@pytest.mark.exhaustive
def test_a_hold_that_is_placed_as_orders_are_held_again_is_not_replaced(
    waiting: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "pause", lambda _: fails(waiting, "ord-3"))
    first = ben_is_first(waiting)

    def at_the_second_write(params: dict[str, dict[str, object]], **_: object) -> None:
        if ":before" in params["ExpressionAttributeValues"] and not holds_of(waiting.world).holds():
            first()

    with at_each_call("dynamodb.UpdateItem", at_the_second_write):
        result = waiting.types("release", "--all", "--stop-at", "0%")
    assert "another operator has changed the hold" in result.stdout.replace("\n", " ")
    assert holds_of(waiting.world).holds() == [OF_BEN]


def ben_is_first(operator: Operator) -> Callable[..., None]:
    """Return a hook that places OF_BEN when it is called first, and does nothing after that."""
    todo = [OF_BEN]

    def places(**_: object) -> None:
        if todo:
            holds_of(operator.world).hold(todo.pop())

    return places


@pytest.mark.parametrize(
    ("given", "code", "sentence"),
    [
        (("--all",), 1, "Everything is not held."),
        (("--workflow", "story"), 1, "Workflow story is not held."),
        (("payment", "--share", "10"), 2, "An agent is released as a whole"),
        (("--all", "--share", "0"), 2, "--share must be 1 to 100 percent"),
        (("--all", "--share", "101"), 2, "--share must be 1 to 100 percent"),
        (("--all", "--share", "half"), 2, "--share must be 1 to 100 percent"),
        (("--all", "--stop-at", "2"), 2, "--stop-at must be a share from 0% to 100%"),
        (("--all", "--watch", "2h"), 2, "is too long"),
        ((), 2, "Give exactly one of"),
    ],
)
def test_a_release_that_is_not_possible_is_refused(
    operator: Operator, given: tuple[str, ...], code: int, sentence: str
) -> None:
    result = operator.types("release", *given)
    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr


def test_a_hold_on_orders_that_cannot_be_read_is_shown_and_can_be_released(
    operator: Operator,
) -> None:
    operator.world.dynamodb.put_item(
        TableName=operator.world.stack.outputs["ControlTableName"],
        Item={"ControlId": {"S": "holds"}, "workflow:*/operator": {"M": {"Until": {"S": "soon"}}}},
    )
    assert "its hold cannot be read" in operator.types("agents").stdout
    some = operator.types("release", "--all", "--share", "10")
    assert "The hold cannot be read: release all of it" in some.stderr
    assert operator.reads("release", "--all")["outcome"] == "done"
    assert holds_of(operator.world).holds() == []


def test_an_order_that_comes_while_everything_is_held_waits_and_goes_on_after_the_release(
    operator: Operator,
) -> None:
    hold_all(operator)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").step("reserve_stock").held_since is not None
    operator.types("release", "--all")
    operator.world.clock.now += 20_000
    operator.world.run()
    assert operator.world.task("ord-1").step("reserve_stock").held_since is None

"""Holding and releasing agents: what is stored, what is printed, and what is woken."""

import json
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.states import TaskState
from roundsman.supervisor import parked
from roundsman_console.acts.order.passes import SEEN_WITHIN
from roundsman_console.faces.cli import confirm
from roundsman_testing.stack import MORNING
from tests.console.operators import Operator, at_each_call, document, holds_of, in_retry
from tests.moto.orders import order
from tests.support.steps import changed_step

HALF_AN_HOUR = 30 * 60_000


def circuit_opens(operator: Operator, *, seconds: int = 60) -> None:
    at = operator.world.clock()
    until = at + seconds * 1000
    holds_of(operator.world).hold(
        Hold("payment", BREAKER, at, until, "5 of 8 calls failed", "payment")
    )


def hold(operator: Operator, *more: str, length: str = "30m") -> None:
    result = operator.asks("hold", "payment", "--for", length, *more)
    assert result.exit_code == 0, result.output


def waits_for_payment(operator: Operator, *names: str, held_for: str = "payment") -> None:
    """Orders whose charge waits for the payment agent, or for the holds on orders."""
    for name in names:
        operator.world.submit(order(name, processIn=3600))
    operator.world.run()
    for name in names:
        task = operator.world.task(name)
        step = changed_step(
            task.step("charge_card"),
            held_since=operator.world.clock(),
            not_before=operator.world.clock(),
            held_for=held_for,
        )
        held = replace(task, version=task.version + 1, steps={"charge_card": step})
        operator.world.store.save(held, seen=task.version)


def commands(operator: Operator) -> list[str]:
    return operator.world.bodies(operator.world.url("SchedulerQueue"))


def inspect(name: str) -> str:
    return f'{{"kind":"inspect","taskId":"{name}","version":1}}'


# ---- hold ---------------------------------------------------------------------------------------


def test_hold_is_stored_and_says_what_follows(operator: Operator) -> None:
    result = operator.asks("hold", "payment", "--for", "30m")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == (
        "payment is held by ops until 2027-01-15T08:30:00Z (30 min): routine."
    )
    for words in ("counts no attempt", "complete-by moves", "roundsman release payment"):
        assert words in result.stdout
    until = MORNING + HALF_AN_HOUR
    assert holds_of(operator.world).holds() == [
        Hold("payment", OPERATOR, MORNING, until, "routine", "ops")
    ]


def test_hold_as_json_is_one_object(operator: Operator) -> None:
    assert document(operator.asks("hold", "payment", "--for", "30m", "--json")) == {
        "agent": "payment",
        "command": "hold",
        "outcome": "done",
        "hold": {
            "since": "2027-01-15T08:00:00.000Z",
            "until": "2027-01-15T08:30:00.000Z",
            "by": "ops",
            "reason": "routine",
            "passes": [],
        },
        "replaced": None,
        "circuit": None,
    }


@pytest.mark.parametrize(("length", "change"), [("10m", "ends sooner"), ("2h", "lasts longer")])
def test_holding_again_replaces_the_hold_and_says_so(
    operator: Operator, length: str, change: str
) -> None:
    hold(operator)
    result = operator.types(
        "hold", "payment", "--for", length, "--as", "amy", "--reason", "later", "--yes"
    )
    assert "replaces the hold by ops until 2027-01-15T08:30:00Z (routine)" in result.stdout
    assert change in result.stdout
    (stored,) = holds_of(operator.world).holds()
    assert (stored.by, stored.reason) == ("amy", "later")


def test_hold_says_that_the_circuit_is_open_as_well(operator: Operator) -> None:
    circuit_opens(operator)
    result = operator.asks("hold", "payment", "--for", "30m")
    assert "The circuit of payment is open, until 2027-01-15T08:01:00Z at least" in result.stdout
    assert len(holds_of(operator.world).holds()) == 2


def test_hold_asks_first_and_does_nothing_where_the_answer_is_no(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(operator, length="10m")
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    asked = ("hold", "payment", "--for", "30m", "--reason", "x", "--as", "amy")
    refused = operator.types(*asked, answer="n\n")
    assert refused.exit_code == 1
    assert "payment is held by ops until 2027-01-15T08:10:00Z: routine." in refused.stderr
    assert "Hold payment for 30 min? [y/N]" in refused.stderr
    assert [one.by for one in holds_of(operator.world).holds()] == ["ops"]
    assert operator.types(*asked, answer="y\n").exit_code == 0
    assert [one.by for one in holds_of(operator.world).holds()] == ["amy"]


@pytest.mark.parametrize("length", ["9s", "7d1s", "30"])
def test_a_length_that_no_hold_can_have_is_refused(operator: Operator, length: str) -> None:
    result = operator.asks("hold", "payment", "--for", length)
    assert (result.exit_code, result.stdout) == (2, "")
    assert holds_of(operator.world).holds() == []


@pytest.mark.parametrize("length", ["10s", "7d"])
def test_the_shortest_and_the_longest_hold_are_taken(operator: Operator, length: str) -> None:
    hold(operator, length=length)
    assert len(holds_of(operator.world).holds()) == 1


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_an_agent_that_the_stack_does_not_have_is_reported_with_those_it_has(
    operator: Operator, verb: str
) -> None:
    more = ("--for", "30m", "--yes") if verb == "hold" else ()
    for name in ("paymnt", "Payment", "", "\udcff\x1b[31m"):
        result = operator.types(verb, name, *more, "--reason", "x")
        assert (result.exit_code, result.stdout) == (3, ""), name
        assert result.stderr.startswith("No agent ")
        assert result.stderr.endswith("The agents are inventory, mail, payment, shipping.\n")
        assert "\x1b" not in result.stderr


@pytest.mark.exhaustive
def test_what_people_say_of_a_hold_is_inert_wherever_it_is_shown(operator: Operator) -> None:
    evil = "\x1b[31m[red]gone\udcff\n"
    result = operator.types(
        "hold", "payment", "--for", "30m", "--yes", "--reason", evil, "--as", evil
    )
    assert result.exit_code == 0, result.output
    waits_for_payment(operator, "ord-1")
    again = operator.types("hold", "payment", "--for", "1h", "--yes", "--reason", evil)
    for shown in (result, again, operator.types("agents"), operator.types("show", "ord-1")):
        assert "[red]gone" in shown.stdout.replace("\n", "").replace(" ", ""), shown.stdout
        assert "\x1b" not in shown.output


def test_the_other_operators_get_an_alert_of_a_hold_and_of_its_release(operator: Operator) -> None:
    alerts = operator.world.alert_queue()
    hold(operator)
    assert operator.types("release", "payment", "--as", "amy", "--reason", "back").exit_code == 0
    held, released = (json.loads(body) for body in operator.world.bodies(alerts))
    assert held["Subject"] == "Roundsman: payment is held by ops until 2027-01-15T08:30Z"
    document = json.loads(held["Message"])
    expected = {
        "alert": "agent_held",
        "severity": "info",
        "agent": "payment",
        "by": "ops",
        "reason": "routine",
        "since": "2027-01-15T08:00:00.000Z",
        "until": "2027-01-15T08:30:00.000Z",
        "summary": "payment is held by ops until 2027-01-15T08:30Z: routine",
        "do": {"look": "roundsman agents", "release": "roundsman release payment"},
    }
    assert {name: document[name] for name in expected} == expected
    assert {name: one["Value"] for name, one in held["MessageAttributes"].items()} == {
        "kind": "agent_held",
        "workflow": "none",
        "step": "none",
        "severity": "info",
        "agent": "payment",
    }
    printed = json.loads(released["Message"])
    assert (printed["alert"], printed["by"], printed["reason"]) == ("agent_released", "amy", "back")


def test_a_hold_stands_though_its_alert_cannot_be_sent(operator: Operator) -> None:
    with at_each_call("sns.Publish", refuse):
        result = operator.asks("hold", "payment", "--for", "30m")
    assert result.exit_code == 0
    assert result.stderr.startswith("The other operators were not alerted: ")
    assert len(holds_of(operator.world).holds()) == 1


# ---- release ------------------------------------------------------------------------------------


def test_release_ends_the_hold_and_says_that_nothing_waits(operator: Operator) -> None:
    hold(operator)
    result = operator.types("release", "payment", "--as", "amy", "--reason", "it is back")
    assert result.exit_code == 0, result.output
    assert result.stdout == ("payment is released by amy: it is back.\nNo task waits for it.\n")
    assert holds_of(operator.world).holds() == []


def test_release_wakes_what_waits_for_this_agent_and_nothing_else(operator: Operator) -> None:
    in_retry(operator)
    operator.world.bodies(operator.world.url("SchedulerQueue"))
    waits_for_payment(operator, "ord-2", "ord-3")
    hold(operator)
    result = operator.types("release", "payment")
    assert "2 tasks that wait: woken from 2027-01-15T08:00:11Z on, 30 per second." in result.stdout
    operator.world.clock.now += 10_000
    assert commands(operator) == []  # while schedulers may not know of the release
    operator.world.clock.now += 2_000
    assert sorted(commands(operator)) == [inspect("ord-2"), inspect("ord-3")]


def test_release_of_another_agent_wakes_nothing(operator: Operator) -> None:
    waits_for_payment(operator, "ord-2")
    assert operator.asks("hold", "mail", "--for", "30m").exit_code == 0
    assert "No task waits for it." in operator.types("release", "mail").stdout


@pytest.mark.exhaustive
def test_release_as_json_says_how_many_were_woken(operator: Operator) -> None:
    hold(operator)
    waits_for_payment(operator, "ord-2")
    printed = operator.reads("release", "payment", "--as", "amy")
    assert (printed["outcome"], printed["by"], printed["reason"]) == ("done", "amy", None)
    assert (printed["woken"], printed["more"]) == (1, False)
    assert printed["hold"] == {
        "since": "2027-01-15T08:00:00.000Z",
        "until": "2027-01-15T08:30:00.000Z",
        "by": "ops",
        "reason": "routine",
        "passes": [],
    }


def test_release_says_that_the_circuit_is_open_and_wakes_nothing(operator: Operator) -> None:
    hold(operator)
    waits_for_payment(operator, "ord-2")
    circuit_opens(operator)
    result = operator.types("release", "payment")
    assert "Only a successful call closes it" in result.stdout
    assert "The supervisor wakes what waits, once the circuit has closed." in result.stdout
    assert [one.kind for one in holds_of(operator.world).holds()] == [BREAKER]
    operator.world.clock.now += 60_000
    assert commands(operator) == []


@pytest.mark.parametrize("kind", [OPERATOR, BREAKER])
def test_a_hold_that_cannot_be_read_is_shown_and_can_be_released(
    operator: Operator, kind: str
) -> None:
    world = operator.world
    world.dynamodb.put_item(
        TableName=world.stack.outputs["ControlTableName"],
        Item={"ControlId": {"S": "holds"}, f"payment/{kind}": {"M": {"Until": {"S": "soon"}}}},
    )
    assert "its hold cannot be read" in json.dumps(operator.reads("agents"))
    released = operator.reads("release", "payment")
    assert (released["outcome"], released["circuit"]) == ("done", None)
    assert holds_of(world).holds() == []


def test_release_of_what_nobody_holds_is_refused(operator: Operator) -> None:
    result = operator.types("release", "payment")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "payment is not held by an operator.\n"
    circuit_opens(operator)
    result = operator.types("release", "payment")
    assert result.exit_code == 1
    assert "payment is not held by an operator. The circuit of payment is open" in result.stderr
    assert [one.kind for one in holds_of(operator.world).holds()] == [BREAKER]


def test_release_of_a_hold_that_has_ended_is_refused(operator: Operator) -> None:
    hold(operator, length="10s")
    operator.world.clock.now += 10_000
    assert operator.types("release", "payment").exit_code == 1


def test_the_first_ones_are_woken_and_the_supervisor_wakes_the_rest(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked, "FIRST", 2)
    hold(operator)
    for name in ("ord-4", "ord-2", "ord-3"):
        waits_for_payment(operator, name)
        operator.world.clock.now += 1_000
    result = operator.types("release", "payment")
    assert "2 tasks that wait: woken" in result.stdout
    assert "Any other task that waits is woken by the supervisor" in result.stdout
    operator.world.clock.now += 20_000
    assert sorted(commands(operator)) == [inspect("ord-2"), inspect("ord-4")]


def test_a_release_whose_wakes_cannot_be_sent_is_done_all_the_same(operator: Operator) -> None:
    hold(operator)
    waits_for_payment(operator, "ord-2")
    with at_each_call("sqs.SendMessage", refuse):
        result = operator.types("release", "payment")
    assert result.exit_code == 0
    assert result.stdout.startswith("payment is released")
    assert "Any task that waits is woken by the supervisor" in result.stdout
    assert "tasks were not all woken at once: sending a message to" in result.stderr
    assert holds_of(operator.world).holds() == []


def test_a_release_that_is_interrupted_as_it_wakes_is_done_all_the_same(
    operator: Operator,
) -> None:
    hold(operator)
    waits_for_payment(operator, "ord-2")
    with at_each_call("sqs.SendMessage", interrupt):
        result = operator.types("release", "payment")
    assert result.exit_code == 0
    assert "Any task that waits is woken by the supervisor" in result.stdout
    assert result.stderr == "The first waiting tasks were not all woken at once: interrupted.\n"


def interrupt(**_rest: object) -> None:
    """Whoever types loses patience."""
    raise KeyboardInterrupt


def test_a_hold_that_aws_refuses_is_one_sentence(operator: Operator) -> None:
    with at_each_call("dynamodb.UpdateItem", refuse):
        result = operator.asks("hold", "payment", "--for", "30m")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holding the agent payment" in result.stderr
    assert "Traceback" not in result.output


def refuse(**_rest: object) -> None:
    """AWS says no to whoever types."""
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateItem")


def test_one_order_passes_the_hold_and_the_others_wait_on(operator: Operator) -> None:
    world = operator.world
    hold(operator)
    world.pass_time(SEEN_WITHIN)
    world.submit(order("ord-1"), order("ord-2"))
    world.run()
    world.pass_time(SEEN_WITHIN)
    result = operator.asks("run", "ord-1", "--past-holds")
    assert result.exit_code == 0, result.output
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.task("ord-2").state is TaskState.RETRY
    held = document(operator.types("agents", "--json"))["agents"][2]["hold"]  # type: ignore[index]
    assert held["passes"] == ["ord-1"]
    assert SEEN_WITHIN in operator.patience.slept


def test_a_hold_that_another_operator_changes_meanwhile_is_not_changed_and_nothing_is_sent(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(operator)
    waits_for_payment(operator, "ord-1")
    monkeypatch.setattr(DynamoHolds, "change", lambda *_: False)
    version = operator.world.task("ord-1").version
    result = operator.asks("run", "ord-1", "--past-holds")
    assert result.exit_code == 1
    assert "Another operator has changed the hold on payment just now" in result.output
    assert operator.world.task("ord-1").version == version


def test_many_orders_do_not_pass_a_hold(operator: Operator) -> None:
    result = operator.asks("resubmit", "ord-1", "ord-2", "--past-holds")
    assert result.exit_code == 2
    assert "--past-holds tries one order" in result.output

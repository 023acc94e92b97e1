"""The circuit breaker: what opens it, what an open one does, what closes it."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from roundsman.agents.guard import CallHeld, NotCalled
from roundsman.aws.guard.breaker import TRIED_FOR
from roundsman.aws.guard.guard import AgentGuard
from roundsman.errors import (
    Busy,
    CredentialRefused,
    PermanentError,
    TransientError,
    TryAgain,
    WrongAddress,
)
from roundsman.model.holds import BREAKER
from roundsman.model.instants import MINUTE, SECOND
from roundsman.wire.alert import Alert
from tests.contract.circuits import (
    FAILURES,
    RECOVERY,
    Circuit,
    Unforeseen,
    call,
    count_as_failed,
    elsewhere,
    fails,
    fresh_circuits,
    real_now,
)
from tests.contract.worlds import World

WHY = f"{FAILURES} calls in a row failed; the last error: TransientError"

__all__ = ["fresh_circuits"]

pytestmark = pytest.mark.usefixtures("fresh_circuits")

DOWN = fails(TransientError("no answer"))


def answers() -> str:
    return "done"


def never() -> str:
    raise AssertionError("the service was called")


@pytest.fixture
def circuit(dynamo_world: World) -> Circuit:
    return Circuit(dynamo_world)


# ---- what opens it -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [TransientError("503"), TimeoutError(), ConnectionResetError(), OSError("no route")]
)
def test_failures_in_a_row_open_it_and_the_last_of_them_is_held(
    circuit: Circuit, error: Exception
) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES - 1):
        with pytest.raises(type(error)) as caught:
            call(guard, fails(error))
        assert caught.value is error
    assert circuit.state() is None, "no write before it opens"
    with pytest.raises(CallHeld, match=f"circuit is open: {FAILURES} calls in a row") as held:
        call(guard, fails(error))
    assert held.value.called
    assert 0 < held.value.until - real_now() <= RECOVERY
    assert held.value.until % SECOND == 0
    assert circuit.state() == "OPEN"


@pytest.mark.parametrize(
    "alive",
    [
        fails(PermanentError("CardDeclined")),
        fails(Busy("429", retry_after=timedelta(seconds=1))),
        answers,
    ],
)
def test_any_answer_of_the_service_ends_the_row_of_failures(
    circuit: Circuit, alive: Callable[[], str]
) -> None:
    guard = circuit.instance()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            with pytest.raises(TransientError, match="no answer"):
                call(guard, DOWN)
        with suppress(PermanentError, Busy):
            assert call(guard, alive) == "done"
    assert circuit.state() is None


@pytest.mark.parametrize("answered", [answers, fails(PermanentError("No")), fails(Busy("429"))])
def test_a_probe_that_is_answered_neither_ends_the_row_nor_closes(
    circuit: Circuit, answered: Callable[[], str]
) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES - 1):
        with pytest.raises(TransientError, match="no answer"):
            call(guard, DOWN)
        with suppress(PermanentError, Busy):
            assert asked(guard, answered) == "done"
    with pytest.raises(CallHeld):
        call(guard, DOWN)
    circuit.let_recover()
    guard = circuit.instance()
    with suppress(PermanentError, Busy):
        assert asked(guard, answered) == "done"
    assert circuit.state() == "HALF_OPEN"
    assert call(guard, answers) == "done"
    assert circuit.state() == "CLOSED"


def test_a_probe_that_fails_counts(circuit: Circuit) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES - 1):
        with pytest.raises(TransientError):
            asked(guard, DOWN)
    with pytest.raises(CallHeld):
        asked(guard, DOWN)


def asked(guard: AgentGuard, function: Callable[[], str]) -> str:
    return guard.call(function, ends_at=real_now() + MINUTE, asks=True)


def test_a_probe_without_a_path_at_the_service_neither_counts_nor_opens_it_again(
    circuit: Circuit,
) -> None:
    guard = circuit.instance()
    not_served = fails(WrongAddress("the address answers 405 to GET without the service's error"))
    for _ in range(2 * FAILURES):
        with pytest.raises(WrongAddress):
            asked(guard, not_served)
    assert circuit.state() is None
    circuit.open(guard)
    circuit.let_recover()
    guard = circuit.instance()
    with pytest.raises(WrongAddress):
        asked(guard, not_served)
    assert circuit.state() == "HALF_OPEN"
    assert call(guard, answers) == "done"
    assert circuit.state() == "CLOSED"


def test_a_credential_that_a_probe_finds_refused_is_counted(circuit: Circuit) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES - 1):
        with pytest.raises(CredentialRefused):
            asked(guard, fails(CredentialRefused("the service refused the credential (401)")))
    with pytest.raises(CallHeld):
        asked(guard, fails(CredentialRefused("the service refused the credential (401)")))


@pytest.mark.parametrize(
    "error",
    [
        CredentialRefused("the service refused the credential (401)"),
        WrongAddress("the address answers 404 to POST without the service's error"),
        TransientError("POST answered 503 OutOfStock", cause="answered 503"),
    ],
)
def test_the_reason_of_an_open_circuit_names_the_cause(
    circuit: Circuit, error: TransientError
) -> None:
    guard, what = circuit.instance(), f"{type(error).__name__}: {error.cause or error}"
    why = f"5 calls in a row failed; the last error: {what}"
    for _ in range(FAILURES - 1):
        with pytest.raises(type(error)):
            call(guard, fails(error))
    with pytest.raises(CallHeld) as held:
        call(guard, fails(error))
    assert str(held.value) == f"payment's circuit is open: {why}"
    assert [hold.reason for hold in circuit.holds()] == [why]
    guard.publish_alerts()
    [opened] = circuit.alerts
    assert json.loads(opened.body)["reason"] == why
    assert why in opened.text
    circuit.let_recover()
    with pytest.raises(
        CallHeld, match=re.escape(f"the test call failed; the last error: {what}"[:60])
    ):
        call(circuit.instance(), fails(error))


@pytest.mark.parametrize(
    "error", [TransientError("no stock for ada@example.com"), ConnectionRefusedError("10.0.0.1")]
)
def test_the_reason_names_the_type_of_any_other_error_and_not_its_message(
    circuit: Circuit, error: Exception
) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES):
        with suppress(type(error), CallHeld):
            call(guard, fails(error))
    why = f"5 calls in a row failed; the last error: {type(error).__name__}"
    assert [hold.reason for hold in circuit.holds()] == [why]
    guard.publish_alerts()
    [opened] = circuit.alerts
    assert f"The circuit of agent payment is open: {why};" in opened.text
    assert str(error) not in opened.body


def test_the_reason_names_no_credential_that_was_refused_before_another_failure(
    circuit: Circuit,
) -> None:
    guard = circuit.instance()
    for _ in range(FAILURES - 1):
        with pytest.raises(CredentialRefused):
            call(guard, fails(CredentialRefused("the service refused the credential (401)")))
    with pytest.raises(CallHeld):
        call(guard, DOWN)
    assert [hold.reason for hold in circuit.holds()] == [WHY]


@pytest.mark.parametrize("mistake", [Unforeseen(), FileNotFoundError(2, "No such file")])
def test_an_authors_mistake_neither_counts_nor_ends_the_row(
    circuit: Circuit, mistake: Exception
) -> None:
    guard = circuit.instance()
    for _ in range(2 * FAILURES):
        with pytest.raises(type(mistake)):
            call(guard, fails(mistake))
    for _ in range(FAILURES - 1):
        with pytest.raises(TransientError):
            call(guard, DOWN)
    with pytest.raises(type(mistake)):
        call(guard, fails(mistake))
    with pytest.raises(CallHeld):
        call(guard, DOWN)


def test_what_ends_the_process_passes(circuit: Circuit) -> None:
    def leave() -> str:
        raise SystemExit(1)

    with pytest.raises(SystemExit):
        call(circuit.instance(), leave)


# ---- while it is open --------------------------------------------------------------------


def test_while_it_is_open_no_instance_calls(circuit: Circuit) -> None:
    guard, other = circuit.instance(), circuit.instance()
    circuit.open(guard)
    for instance in (guard, other):
        with pytest.raises(CallHeld, match="5 calls in a row failed") as held:
            elsewhere(instance, never)
        assert not held.value.called
        assert SECOND < held.value.until - real_now() <= RECOVERY


@pytest.mark.parametrize("error", [TransientError("late"), Busy("429"), Unforeseen(), OSError()])
def test_a_call_that_fails_once_another_instance_has_opened_it_is_held_not_failed(
    circuit: Circuit, error: Exception
) -> None:
    other = circuit.instance()

    def fails_late() -> str:
        circuit.open(circuit.instance())
        raise error

    with pytest.raises(CallHeld) as held:
        elsewhere(other, fails_late)
    assert held.value.called
    assert held.value.__cause__ is error


def test_a_call_that_succeeds_once_another_instance_has_opened_it_has_succeeded(
    circuit: Circuit,
) -> None:
    def answered() -> str:
        circuit.open(circuit.instance())
        return "done"

    assert elsewhere(circuit.instance(), answered) == "done"


def test_a_call_that_is_refused_once_another_instance_has_opened_it_is_refused(
    circuit: Circuit,
) -> None:
    def declined() -> str:
        circuit.open(circuit.instance())
        raise PermanentError("CardDeclined")

    with pytest.raises(PermanentError):
        elsewhere(circuit.instance(), declined)


def test_the_scheduler_is_kept_from_it_by_a_hold_as_long_as_it_is_open(circuit: Circuit) -> None:
    circuit.open(circuit.instance())
    [hold] = circuit.holds()
    assert (hold.agent, hold.kind, hold.reason) == ("payment", BREAKER, WHY)
    assert RECOVERY - SECOND <= hold.until - hold.since <= RECOVERY


def test_a_hold_that_is_missing_is_written_again_by_who_holds_back(circuit: Circuit) -> None:
    circuit.open(circuit.instance())
    circuit.world.holds(circuit.clock).release("payment", BREAKER)
    guard = circuit.instance()
    with pytest.raises(CallHeld) as held:
        call(guard, never)
    [hold] = circuit.holds()
    assert hold.until == held.value.until
    circuit.world.holds(circuit.clock).release("payment", BREAKER)
    with pytest.raises(CallHeld):
        call(guard, never)
    assert circuit.holds() == [], "at most every five seconds an instance"


# ---- trying it, and closing --------------------------------------------------------------


@pytest.mark.parametrize("alive", [answers, fails(PermanentError("No")), fails(Busy("429"))])
def test_one_answer_after_the_recovery_time_closes_it(
    circuit: Circuit, alive: Callable[[], str]
) -> None:
    circuit.open(circuit.instance())
    circuit.let_recover()
    with suppress(PermanentError, Busy):
        assert call(circuit.instance(), alive) == "done"
    assert circuit.state() == "CLOSED"
    assert circuit.holds() == []
    assert elsewhere(circuit.instance(), answers) == "done"


def test_while_one_call_tries_the_service_the_others_are_held_for_some_seconds(
    circuit: Circuit,
) -> None:
    circuit.open(circuit.instance())
    circuit.let_recover()

    def meanwhile() -> str:
        with pytest.raises(CallHeld, match="one test call to the service is in progress") as held:
            elsewhere(circuit.instance(), never)
        assert not held.value.called
        assert 0 < held.value.until - real_now() <= TRIED_FOR
        [hold] = circuit.holds()
        assert 0 < hold.until - real_now() <= TRIED_FOR
        return "done"

    assert call(circuit.instance(), meanwhile) == "done"


def test_a_call_that_fails_while_another_tries_the_service_is_held(circuit: Circuit) -> None:
    def fails_late() -> str:
        circuit.open(circuit.instance())
        circuit.let_recover()
        with pytest.raises(Unforeseen):
            elsewhere(circuit.instance(), fails(Unforeseen()))
        assert circuit.state() == "HALF_OPEN"
        raise TransientError("no answer")

    with pytest.raises(CallHeld, match="one test call to the service is in progress") as held:
        elsewhere(circuit.instance(), fails_late)
    assert held.value.called
    assert 0 < held.value.until - real_now() <= TRIED_FOR


def test_a_try_that_fails_holds_it_as_long_again_and_is_no_attempt(circuit: Circuit) -> None:
    circuit.open(circuit.instance())
    [first] = circuit.holds()
    circuit.let_recover()
    with pytest.raises(CallHeld, match="the test call failed") as held:
        call(circuit.instance(), DOWN)
    assert held.value.called
    assert SECOND < held.value.until - real_now() <= RECOVERY
    assert circuit.state() == "OPEN"
    [hold] = circuit.holds()
    assert hold.until == held.value.until
    assert hold.since == first.since, "since it first opened"


def test_an_authors_mistake_in_the_call_that_tries_neither_closes_nor_strands_it(
    circuit: Circuit,
) -> None:
    circuit.open(circuit.instance())
    circuit.let_recover()
    guard = circuit.instance()
    with pytest.raises(Unforeseen):
        call(guard, fails(Unforeseen()))
    assert circuit.state() == "HALF_OPEN"
    with pytest.raises(CallHeld):
        elsewhere(circuit.instance(), never)
    assert call(guard, answers) == "done", "its instance may try again"
    assert circuit.state() == "CLOSED"


def test_a_call_that_was_not_made_changes_nothing_that_is_known_about_the_service(
    circuit: Circuit,
) -> None:
    circuit.open(circuit.instance())
    circuit.let_recover()
    guard = circuit.instance()
    with pytest.raises(NotCalled):
        call(guard, fails(NotCalled("too late")))
    assert circuit.state() == "HALF_OPEN"
    assert call(guard, answers) == "done"


def test_who_dies_while_trying_is_followed_by_another_after_one_recovery_time(
    circuit: Circuit,
) -> None:
    circuit.open(circuit.instance())
    circuit.let_recover()
    with pytest.raises(Unforeseen):
        elsewhere(circuit.instance(), fails(Unforeseen()))  # as good as dead: nobody closes it
    circuit.world.client.update_item(
        TableName=circuit.world.tables.control,
        Key={"ControlId": {"S": "breaker#payment"}},
        UpdateExpression="SET TriedUntil = TriedUntil - :past",
        ExpressionAttributeValues={":past": {"N": str(RECOVERY // SECOND)}},
    )
    assert call(circuit.instance(), answers) == "done"
    assert circuit.state() == "CLOSED"


# ---- alerts ------------------------------------------------------------------------------


def test_opening_and_closing_are_alerted_once_each_and_after_the_calls(circuit: Circuit) -> None:
    guard = circuit.instance()
    circuit.open(guard)
    assert circuit.alerts == []
    guard.publish_alerts()
    guard.publish_alerts()
    [opened] = circuit.alerts
    assert opened.attributes["kind"] == "breaker_opened"
    body = json.loads(opened.body)
    assert (body["agent"], body["reason"]) == ("payment", WHY)
    assert body["do"]["look"] == "roundsman agents"
    circuit.let_recover()
    other = circuit.instance()
    with pytest.raises(CallHeld):
        call(other, DOWN)
    circuit.let_recover()
    other = circuit.instance()
    call(other, answers)
    other.publish_alerts()
    [_, closed] = circuit.alerts
    assert closed.attributes["kind"] == "breaker_closed"
    assert json.loads(closed.body)["since"] == body["since"]


def test_of_several_instances_that_open_it_at_once_one_alerts(circuit: Circuit) -> None:
    first, second = circuit.instance(), circuit.instance()

    def fails_with_the_rest_of_its_row() -> str:
        circuit.open(first)
        count_as_failed("payment", FAILURES - 1)
        raise TransientError("no answer")

    with pytest.raises(CallHeld):
        elsewhere(second, fails_with_the_rest_of_its_row)
    first.publish_alerts()
    second.publish_alerts()
    assert [alert.attributes["kind"] for alert in circuit.alerts] == ["breaker_opened"]


def test_an_alert_that_cannot_be_published_breaks_nothing(
    circuit: Circuit, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Alert) -> None:
        raise RuntimeError("no topic")

    circuit.publish = refuse
    guard = circuit.instance()
    circuit.open(guard)
    guard.publish_alerts()
    assert "alert not published" in capsys.readouterr().out


def test_an_alert_that_could_not_be_published_is_sent_with_the_next_request(
    circuit: Circuit,
) -> None:
    alerts: list[Alert] = []

    def fails_once(alert: Alert) -> None:
        alerts.append(alert)
        if len(alerts) == 1:
            raise TryAgain("throttled")

    circuit.publish = fails_once
    guard = circuit.instance()
    circuit.open(guard)
    for _ in range(3):
        guard.publish_alerts()
    assert [alert.attributes["kind"] for alert in alerts] == ["breaker_opened"] * 2

"""The alert about a command of a principal that is not an operator's."""

import json
from collections.abc import Callable

import pytest

from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import CommandSource, UndoAsked
from roundsman.model.senders import ANY_SENDER, Senders
from roundsman.scheduler.sender_check import ALERTED_FOR, SenderCheck
from roundsman.wire.alert import Alert
from roundsman.wire.commands import INSPECT, START, Command, command_of
from roundsman_testing.faults import Fault, Faults, FaultyOutbox
from roundsman_testing.recording import RecordingOutbox

SENDERS = Senders(frozenset({"AROAOPS"}), "AROASUBMISSION")
COMMAND = command_of("ord-1", UndoAsked(CommandSource("c-1", "ann\x1b[2J", "card 4111")))
STRANGER = "AROASTRANGER:eve"


class Clock:
    now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


def alerts(outbox: RecordingOutbox) -> list[Alert]:
    return [one for one in outbox.sent if isinstance(one, Alert)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox() -> RecordingOutbox:
    return RecordingOutbox()


def check(outbox: RecordingOutbox, clock: Callable[[], int]) -> SenderCheck:
    return SenderCheck(SENDERS, outbox=outbox, clock=clock)


def test_an_operators_command_has_its_sender_and_causes_no_alert(
    outbox: RecordingOutbox, clock: Clock
) -> None:
    command, foreign = check(outbox, clock).checked(COMMAND, "AROAOPS:ann")
    assert command.event is not None
    assert command.event.asked.sender == "AROAOPS:ann"
    assert not foreign
    assert alerts(outbox) == []


def test_a_foreign_command_is_passed_on_with_its_sender_and_alerted_in_words(
    outbox: RecordingOutbox, clock: Clock
) -> None:
    command, foreign = check(outbox, clock).checked(COMMAND, STRANGER)
    assert command.event is not None
    assert (command.event.asked.sender, foreign) == (STRANGER, True)
    [alert] = alerts(outbox)
    document = json.loads(alert.body)
    assert document["alert"] == alert.attributes["kind"] == "foreign_command"
    assert document["severity"] == "critical"
    assert (document["command"], document["order"]) == ("undo", "ord-1")
    assert document["sender"] == STRANGER
    assert STRANGER in alert.text
    assert STRANGER in alert.sms
    assert "roundsman show ord-1" in alert.text
    assert "\x1b" not in alert.text + alert.sms + alert.subject
    assert "4111" not in alert.body + alert.text, "the reason may have any contents"


def test_a_sender_that_is_not_known_is_foreign_and_alerted(
    outbox: RecordingOutbox, clock: Clock
) -> None:
    assert check(outbox, clock).checked(COMMAND, None)[1]
    assert "a principal that is not known" in alerts(outbox)[0].sms


def test_one_principal_is_alerted_once_in_an_hour(outbox: RecordingOutbox, clock: Clock) -> None:
    senders = check(outbox, clock)
    senders.checked(COMMAND, STRANGER)
    clock.now += ALERTED_FOR - 1
    assert senders.checked(COMMAND, "AROASTRANGER:another-session")[1]
    assert len(alerts(outbox)) == 1
    senders.checked(COMMAND, "AIDAOTHER")
    assert len(alerts(outbox)) == 2
    clock.now += 1
    senders.checked(COMMAND, STRANGER)
    assert len(alerts(outbox)) == 3


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.NOT_DONE, TryAgain), (Fault.REFUSED, CallRefused)]
)
def test_a_command_whose_alert_cannot_be_published_waits_for_it(
    fault: Fault, error: type[Exception], outbox: RecordingOutbox, clock: Clock
) -> None:
    faults = Faults().on("publish", fault, nth=1)
    senders = SenderCheck(SENDERS, outbox=FaultyOutbox(outbox, faults), clock=clock)
    with pytest.raises(error):
        senders.checked(COMMAND, STRANGER)
    assert senders.checked(COMMAND, STRANGER)[1]
    assert len(alerts(outbox)) == 1


@pytest.mark.parametrize("kind", [START, INSPECT])
def test_start_and_inspect_are_not_checked(
    kind: str, outbox: RecordingOutbox, clock: Clock
) -> None:
    command = Command(kind, "ord-1")
    assert check(outbox, clock).checked(command, STRANGER) == (command, False)
    assert alerts(outbox) == []


def test_without_operators_ids_the_sender_is_noted_and_nothing_is_alerted(
    outbox: RecordingOutbox, clock: Clock
) -> None:
    command, foreign = SenderCheck(ANY_SENDER, outbox=outbox, clock=clock).checked(
        COMMAND, STRANGER
    )
    assert command.event is not None
    assert (command.event.asked.sender, foreign) == (STRANGER, False)
    assert alerts(outbox) == []

"""Who sent a command, and whether the principal is an operator's."""

import pytest

from roundsman.model.events import Cancel, CommandSource, OperatorEvent, Signalled, UndoAsked
from roundsman.model.senders import ANY_SENDER, Senders, is_foreign, principal_of, with_sender

ASKED = CommandSource("c-1", "ann", forwarded_for="AROASHOP:shop")
CANCEL, UNDO = Cancel(ASKED), UndoAsked(ASKED)
OF_A_RUN = UndoAsked(CommandSource("b-1", "ann", forwarded_for="AROAOPS:ann"))
OPERATOR, SUBMISSION, STRANGER = "AROAOPS:ann", "AROASUBMISSION:fn", "AIDASTRANGER"
SUPERVISOR = "AROASUPERVISOR:fn"
SENDERS = Senders(frozenset({"AROAOPS", "AIDABEN"}), "AROASUBMISSION", "AROASUPERVISOR")


@pytest.mark.parametrize(
    ("event", "sender", "senders", "expected"),
    [
        (CANCEL, SUBMISSION, SENDERS, "AROASHOP:shop"),
        (CANCEL, OPERATOR, SENDERS, OPERATOR),  # whatever it says of itself
        (CANCEL, STRANGER, SENDERS, STRANGER),
        (CANCEL, None, SENDERS, None),
        (UNDO, SUBMISSION, SENDERS, SUBMISSION),  # submission forwards no commands of operators
        (CANCEL, SUBMISSION, ANY_SENDER, SUBMISSION),
        (CANCEL, None, ANY_SENDER, None),
        (UNDO, SUPERVISOR, SENDERS, "AROASHOP:shop"),  # any command of a bulk run
        (UNDO, SUPERVISOR, ANY_SENDER, SUPERVISOR),
        (Cancel(CommandSource("c-1", "ann")), SUBMISSION, SENDERS, SUBMISSION),
        (Signalled(ASKED, "paid"), SUBMISSION, SENDERS, "AROASHOP:shop"),
    ],
)
def test_the_sender_is_the_one_that_aws_authenticated(
    event: OperatorEvent, sender: str | None, senders: Senders, expected: str | None
) -> None:
    found = with_sender(event, sender, senders)
    assert found.asked.sender == expected
    assert (type(found), found.asked.command_id) == (type(event), "c-1")


def test_a_command_of_a_bulk_run_is_that_of_who_started_the_run() -> None:
    assert with_sender(OF_A_RUN, SUPERVISOR, SENDERS).asked.sender == "AROAOPS:ann"
    assert with_sender(OF_A_RUN, STRANGER, SENDERS).asked.sender == STRANGER
    assert not is_foreign(OF_A_RUN, SUPERVISOR, SENDERS)
    assert is_foreign(UNDO, SUPERVISOR, SENDERS), "a stranger has started it"
    assert is_foreign(UndoAsked(CommandSource("b-1", "ann")), SUPERVISOR, SENDERS)


CONSOLE = "AROACONSOLE:task-1"
OF_A_TEAM = Senders(frozenset({"AROAOPS"}), "AROASUBMISSION", "AROASUPERVISOR", "AROACONSOLE")
OF_AMY = UndoAsked(CommandSource("c-1", "ann", forwarded_for="amy"))


@pytest.mark.parametrize(
    ("sender", "senders", "expected"),
    [
        (CONSOLE, OF_A_TEAM, "amy (through console)"),
        (CONSOLE, SENDERS, CONSOLE),  # no role is the console's
        (CONSOLE, ANY_SENDER, CONSOLE),
        ("AROACONSOLEX:task-1", OF_A_TEAM, "AROACONSOLEX:task-1"),
        (OPERATOR, OF_A_TEAM, OPERATOR),
        (STRANGER, OF_A_TEAM, STRANGER),
        (SUBMISSION, OF_A_TEAM, SUBMISSION),  # it forwards no commands of operators
        (None, OF_A_TEAM, None),
    ],
)
def test_who_is_signed_in_is_believed_of_the_consoles_role_only(
    sender: str | None, senders: Senders, expected: str | None
) -> None:
    assert with_sender(OF_AMY, sender, senders).asked.sender == expected


def test_without_a_person_a_command_of_the_consoles_role_is_that_of_the_role() -> None:
    for nobody in (None, ""):
        event = UndoAsked(CommandSource("c-1", "amy", forwarded_for=nobody))
        assert with_sender(event, CONSOLE, OF_A_TEAM).asked.sender == CONSOLE


def test_a_bulk_run_of_the_console_is_that_of_the_person_who_signed_it() -> None:
    event = UndoAsked(CommandSource("b-1", "amy", forwarded_for=CONSOLE))
    assert with_sender(event, SUPERVISOR, OF_A_TEAM).asked.sender == "amy (through console)"
    assert with_sender(event, SUPERVISOR, SENDERS).asked.sender == CONSOLE
    assert with_sender(event, STRANGER, OF_A_TEAM).asked.sender == STRANGER
    cancel = Cancel(event.asked)  # an application's, which submission forwards
    assert with_sender(cancel, SUBMISSION, OF_A_TEAM).asked.sender == CONSOLE


def test_the_consoles_role_is_an_operators() -> None:
    run = UndoAsked(CommandSource("b-1", "amy", forwarded_for=CONSOLE))
    for event, sender in ((OF_AMY, CONSOLE), (UNDO, CONSOLE), (run, SUPERVISOR)):
        assert not is_foreign(event, sender, OF_A_TEAM)
        assert is_foreign(event, sender, SENDERS)
    assert is_foreign(OF_AMY, STRANGER, OF_A_TEAM)
    assert is_foreign(run, STRANGER, OF_A_TEAM), "only the supervisor carries a run out"


@pytest.mark.parametrize(
    ("event", "sender", "foreign"),
    [
        (CANCEL, OPERATOR, False),
        (CANCEL, "AIDABEN", False),
        (Signalled(ASKED, "paid"), SUBMISSION, False),
        (Signalled(ASKED, "paid"), STRANGER, True),
        (CANCEL, "AROAOPSX:ann", True),
        (CANCEL, STRANGER, True),
        (CANCEL, None, True),
        (CANCEL, SUBMISSION, False),
        (UNDO, SUBMISSION, True),
    ],
)
def test_a_principal_is_foreign_unless_it_is_an_operators_or_submission_that_forwards(
    event: OperatorEvent, sender: str | None, foreign: bool
) -> None:
    assert is_foreign(event, sender, SENDERS) is foreign


def test_without_operators_ids_nobody_is_foreign() -> None:
    assert not is_foreign(UNDO, STRANGER, Senders(submission="AROASUBMISSION"))
    assert not is_foreign(UNDO, None, ANY_SENDER)


def test_a_principal_is_the_id_before_the_session() -> None:
    assert principal_of("AROAOPS:ann:x") == "AROAOPS"
    assert principal_of("AIDABEN") == "AIDABEN"
    assert principal_of(None) is None

"""Who sent a command, and whether the principal is an operator's."""

import pytest

from roundsman.model.events import Cancel, CommandSource, OperatorEvent, UndoAsked
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
        (UNDO, SUBMISSION, SENDERS, SUBMISSION),  # submission forwards cancellations only
        (CANCEL, SUBMISSION, ANY_SENDER, SUBMISSION),
        (CANCEL, None, ANY_SENDER, None),
        (UNDO, SUPERVISOR, SENDERS, "AROASHOP:shop"),  # any command of a bulk run
        (UNDO, SUPERVISOR, ANY_SENDER, SUPERVISOR),
        (Cancel(CommandSource("c-1", "ann")), SUBMISSION, SENDERS, SUBMISSION),
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


@pytest.mark.parametrize(
    ("event", "sender", "foreign"),
    [
        (CANCEL, OPERATOR, False),
        (CANCEL, "AIDABEN", False),
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

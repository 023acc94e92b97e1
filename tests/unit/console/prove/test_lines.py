"""What was seen of a proof is the same when it is read from its file."""

from dataclasses import replace

import pytest

from roundsman_console.base.errors import InspectorError
from roundsman_dev.prove.document import (
    FaultOutcome,
    FunctionLog,
    LoggedFailure,
    MadeFault,
    SpentLine,
)
from roundsman_dev.prove.report import hash_of
from roundsman_dev.prove.stored_lines import lines_of, read_proof
from tests.unit.console.prove.sound import sound


def test_what_is_read_is_what_was_written() -> None:
    fault = MadeFault("paused", FaultOutcome.REFUSED, "lambda:Update", 5, 9, (("scheduler", "x"),))
    log = FunctionLog(function="stock", lines=3, failures=(LoggedFailure("x", 5),), unread="cut")
    spent = [SpentLine("SQS", "messages", 0.25), SpentLine("Lambda", "time", None)]
    whole = replace(
        sound(),
        circumstances=replace(sound().circumstances, spent=spent, unpriced="no right"),
        faults=[fault],
        logs=[log],
        unread={"prove-1-000009": "it changes while it is read"},
    )
    assert read_proof(lines_of(whole)) == whole


def test_the_hash_is_of_everything_that_was_seen() -> None:
    before = hash_of(sound())
    ledger = [replace(sound().ledger[0], calls=99), *sound().ledger[1:]]
    assert hash_of(replace(sound(), ledger=ledger)) != before
    assert hash_of(sound()) == before


@pytest.mark.parametrize(
    "lines",
    [
        ["{"],
        ["[]"],
        ['{"other": 1}'],
        ['{"proof": {}, "sent": {}}'],
        [],
        ['{"sent": {"order_id": "o-1", "at": 1, "copies": 1}}'],
        ['{"proof": {"run": "prove-1"}}'],
    ],
)
def test_other_lines_are_refused_with_a_sentence(lines: list[str]) -> None:
    with pytest.raises(InspectorError):
        read_proof(lines)


def test_a_line_of_another_form_is_refused_with_a_sentence() -> None:
    lines = [*lines_of(sound()), '{"queue": {"name": "SchedulerQueue"}}\n']
    with pytest.raises(InspectorError, match="not of this release"):
        read_proof(lines)

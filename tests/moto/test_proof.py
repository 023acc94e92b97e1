"""The orders of a proof on the real template in one process: each ends as it must.

REWRITE_PAGES=1 records what was seen, which is the sound proof of tests/unit/console/prove.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_dev.prove.application.orders import order_of
from roundsman_dev.prove.document import ProofDocument
from roundsman_dev.prove.function_logs import function_log
from roundsman_dev.prove.report import report_of
from roundsman_dev.prove.stored_lines import lines_of
from tests.support.proof_on_moto import ProofOnMoto, proof_on_moto
from tests.unit.console.prove.sound import FILE

LONG = 7_200  # seconds on the clock of the stack


@pytest.fixture
def proof(tmp_path: Path) -> Iterator[ProofOnMoto]:
    with proof_on_moto(tmp_path) as made:
        yield made


def ended(proof: ProofOnMoto, numbers: range) -> ProofDocument:
    """What is seen when these orders have ended, and nothing follows any more."""
    sent = proof.send(numbers)
    proof.stack.pass_time_until(
        lambda: all(proof.stack.task(one.order_id).ended for one in sent), within=LONG
    )
    proof.stack.pass_time(900)  # the longest that a message can be sent ahead
    return proof.document(sent)


@pytest.mark.verify
def test_an_order_completes_and_its_ledger_has_each_effect_once(proof: ProofOnMoto) -> None:
    found = ended(proof, range(1))
    asked = order_of(found.sent[0].order_id)
    assert asked is not None
    assert {row.step for row in found.ledger if row.stands} == asked.end.standing
    assert [(row.calls, row.effects, row.late) for row in found.ledger] == [(1, 1, 0)] * 3
    assert report_of(found).verdict == "kept"


@pytest.mark.verify
def test_every_treatment_leads_to_the_end_that_is_known_before(proof: ProofOnMoto) -> None:
    found = ended(proof, range(25))
    report = report_of(found)
    assert report.violations == []
    assert report.verdict == "kept"
    assert report.ended == {"Completed": 22, "Undone": 3}
    if os.environ.get("REWRITE_PAGES"):
        FILE.write_text("".join(lines_of(found)), encoding="utf-8")


@pytest.mark.verify
def test_no_function_logs_what_a_proof_ordered(
    proof: ProofOnMoto, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as a proof judges of the real logs."""
    ended(proof, range(25))
    lines = capsys.readouterr().out.splitlines()
    found = function_log("all", [(0, line) for line in lines])
    assert found.lines > 200
    assert (found.with_contents, found.with_credentials, found.failures) == (0, 0, ())

"""A sound proof of 25 orders, as `tests/moto/test_proof.py` records it."""

from functools import cache
from pathlib import Path

from roundsman_dev.prove.document import ProofDocument
from roundsman_dev.prove.stored_lines import read_proof

FILE = Path(__file__).with_name("sound.jsonl")


@cache
def sound() -> ProofDocument:
    """Every workflow and every treatment is among its orders. Nothing in it is changed in place."""
    with FILE.open(encoding="utf-8") as file:
        return read_proof(file)

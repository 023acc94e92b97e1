"""The problems of a rejected order quote no masked value, also those that the application wrote."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, TypedDict

import pytest

from roundsman import InvalidInput, Masked, Problem, Text
from roundsman.definition.workflow import Workflow
from roundsman.errors import RejectedOrder
from roundsman.model.corrections import changes_of
from roundsman.model.json import Json
from roundsman.model.masked_values import MASK
from roundsman.submission.corrections import checked_changes
from roundsman.submission.events import EventReader
from tests.support.orders_samples import NOW, reply_queue_problem
from workflows.registry import WORKFLOWS

NAME, WORKFLOW = next(iter(WORKFLOWS.items()))
IBAN = "DE02120300000000202051"


class Claim(TypedDict):
    iban: Annotated[str, Text(40), Masked()]


def refuses(claim: Claim) -> Claim:
    raise InvalidInput([Problem("iban", f"the bank does not know {claim['iban']}")])


def names_no_type(order: Mapping[str, Json]) -> Mapping[str, Json]:
    raise InvalidInput([Problem("iban", f"the bank does not know {order['iban']}")])


TYPED = replace(WORKFLOW, input=refuses)
UNTYPED = replace(WORKFLOW, input=names_no_type, masked=("iban",))
OPEN = replace(WORKFLOW, input=names_no_type)


@pytest.mark.parametrize(("workflow", "shown"), [(TYPED, MASK), (UNTYPED, MASK), (OPEN, IBAN)])
def test_a_problem_of_the_applications_function_quotes_no_masked_value(
    workflow: Workflow, shown: str
) -> None:
    body = json.dumps({"orderId": "ord-1", "iban": IBAN})
    with pytest.raises(RejectedOrder) as rejected:
        EventReader({NAME: workflow}).read(body, NOW, reply_queue_problem)
    assert rejected.value.problems == (Problem("iban", f"the bank does not know {shown}"),)


def test_neither_does_that_of_a_correction() -> None:
    changes = changes_of({"iban": IBAN}, ())
    with pytest.raises(InvalidInput) as wrong:
        checked_changes(TYPED, {"orderId": "ord-1", "iban": "another"}, changes)
    assert wrong.value.problems == (Problem("iban", f"the bank does not know {MASK}"),)

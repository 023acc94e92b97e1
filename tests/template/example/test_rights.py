"""The rights of the roles, call by call: none is gained or lost unnoticed.

allowed_calls.txt has the calls that the roles were allowed when the whole stack was one template.
tests/emulator/test_rights.py tries each call on the local AWS.
"""

from pathlib import Path

import pytest

from roundsman_dev.template import part
from tests.emulator.rights import FUNCTIONS, REPLIES, STRANGERS, Call, Deployed
from tests.project import translate
from tests.support.template_reading import roles

ALLOWED = Path(__file__).with_name("allowed_calls.txt")
TRIED = 2520


@pytest.fixture(scope="module")
def tried() -> dict[tuple[str, Call], bool]:
    """Each call of each role, and whether the template lets the role make it."""
    document = translate()
    names = {name: name for name in (*part(document, "Resources"), REPLIES, STRANGERS)}
    deployed = Deployed(names, document)
    assert {f"{name}Role" for name in FUNCTIONS} <= roles(document).keys()
    return {
        (role, call): deployed.is_granted(role, call)
        for role in (f"{name}Role" for name in FUNCTIONS)
        for call in deployed.calls(role)
    }


def test_the_roles_may_make_the_calls_of_the_list_and_no_others(
    tried: dict[tuple[str, Call], bool],
) -> None:
    allowed = sorted(f"{role} {call}" for (role, call), may in tried.items() if may)
    assert allowed == ALLOWED.read_text(encoding="utf-8").splitlines()


def test_as_many_calls_are_tried_as_the_page_says(tried: dict[tuple[str, Call], bool]) -> None:
    assert len(tried) == TRIED
    page = Path(__file__).parents[3] / "docs" / "explanation" / "reliability.md"
    assert f"{sum(tried.values())} of {TRIED:,} are allowed" in page.read_text(encoding="utf-8")

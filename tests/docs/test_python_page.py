"""docs/how-to/use-from-python.md: its programs run as they are printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.client import Client
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.moto.orders import order
from tests.project import deployed_project

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-from-python.md"
CLIENT, INSPECTOR = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
SHORT = 12  # lines; the page promises that both are quick to use


@pytest.fixture
def world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    with deployed_project(roundsman_services, roundsman_clock) as made:
        yield made


@pytest.mark.parametrize("program", [CLIENT, INSPECTOR], ids=["client", "inspector"])
def test_a_program_has_about_ten_lines(program: str) -> None:
    assert len([line for line in program.splitlines() if line]) <= SHORT


@pytest.mark.exhaustive
def test_an_application_submits_and_follows_an_order(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(CLIENT, {"order": order("ord-1")})  # noqa: S102  # the page's own program
    assert capsys.readouterr().out == "not stored yet, or rejected\n"
    world.run()
    capsys.readouterr()
    exec(CLIENT, {"order": order("ord-1")})  # noqa: S102  # the page's own program
    assert capsys.readouterr().out == "Completed None\n"


def test_a_tool_of_an_operator_resubmits_what_is_archived(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    world.faults({"operation": "POST /refunds", "status": 422, "body": {"error": "NoSuchCharge"}})
    world.submit(order("ord-1") | {"shippingAddress": {**ADDRESS, "country": "XX"}})
    world.run()
    assert world.task("ord-1").state == "Archived"
    world.faults()
    capsys.readouterr()
    exec(INSPECTOR.replace("reason=", "wait=0, reason="), {})  # noqa: S102  # the page's own program
    output = capsys.readouterr().out
    assert output.startswith("ord-1 ")
    assert "\nsent resubmit of ord-1 is sent." in output


ADDRESS = {"name": "A. Reader", "street": "1 Main St", "city": "X", "postalCode": "1"}


@pytest.mark.parametrize(
    ("owner", "page_section"),
    [(Client, "roundsman.client"), (Inspector, "roundsman_console.inspector")],
)
def test_the_page_names_every_method(owner: type, page_section: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index(f"`{page_section}`\n") :]
    methods = {
        name for name, found in vars(owner).items() if callable(found) and not name.startswith("_")
    }
    missing = {name for name in methods if f"`{name}" not in section}
    assert missing <= {"submit_text"}

"""The README shows what commands print, and code that runs.

Its screens are on pages whose commands tests run again.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from roundsman_console.base.release import release
from roundsman_testing import World

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
RUN_AGAIN = [
    block
    for page in (PROJECT / "docs").rglob("*.md")
    for block in re.findall(
        r"<!-- run: [a-z-]+ -->\n```console\n(.*?)```", page.read_text(encoding="utf-8"), re.S
    )
]
"""The blocks that test_operations_page.py and test_night.py compare with what is printed."""

SCREENS = re.findall(r"```console\n(.*?)```", README, re.S)


def test_there_is_an_undone_order_and_an_alert() -> None:
    assert [screen.split("\n", 1)[0].split()[2] for screen in SCREENS] == ["show", "alerts"]


@pytest.mark.parametrize("screen", SCREENS)
def test_each_screen_is_on_a_page_whose_commands_are_run(screen: str) -> None:
    assert any(screen in block for block in RUN_AGAIN)


def test_the_version_is_that_of_the_package() -> None:
    assert f"roundsman-{release()}-py3-none-any.whl" in README
    assert f"Version {release()}, alpha" in README


CODE = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_first_test_passes(pytester: pytest.Pytester) -> None:
    order = (PROJECT / "events" / "good.json").read_text(encoding="utf-8")
    pytester.mkdir("events").joinpath("good.json").write_text(order, encoding="utf-8")
    pytester.makepyfile(test_of_the_page=CODE[0])
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@dataclass
class Bank:
    """The client that the page leaves to its reader."""

    declines: bool
    charged: list[str] = field(default_factory=list)
    refunded: list[str] = field(default_factory=list)

    def charge(self, total: str, key: str) -> SimpleNamespace:
        assert total == "39.80"
        self.charged.append(key)
        return SimpleNamespace(id="ch-1", declined=self.declines)

    def refund(self, charge: str, key: str) -> None:
        assert key != charge
        self.refunded.append(charge)


@pytest.mark.parametrize(("declines", "state"), [(False, "Completed"), (True, "Undone")])
def test_the_workflow_in_20_lines_completes_or_is_undone(*, declines: bool, state: str) -> None:
    bank = Bank(declines)
    page: dict[str, object] = {"bank": bank}
    exec(compile(CODE[1], "README.md", "exec"), page)  # noqa: S102  # the code of our own page
    world = World(page["checkout"], agents=[page["payment"]])  # type: ignore[arg-type, list-item]  # of code that is not typed
    order_id = world.submit({"total": "39.80"})
    world.run()
    assert world.task(order_id).state == state
    assert bank.refunded == (bank.charged if declines else [])


def test_the_workflow_in_20_lines_has_about_as_many() -> None:
    definition = CODE[1].split("handler")[0].splitlines()
    assert sum(bool(line.strip()) for line in definition) <= 22

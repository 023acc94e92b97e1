"""The pictures in README.md and docs/, of the console at three widths.

REWRITE_PAGES=1 writes them into docs/images. Otherwise they are made, and what is stored must be
there, of the same width, referred to, and small. Fonts differ between machines, so the pixels are
not compared.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.live import LIVE_SECONDS
from roundsman_console.faces.web.readings import step_health
from roundsman_console.facts.workflow.health import Health
from roundsman_console.facts.workflow.reading import StepsToRead
from tests.browser.desk import MIDDLE, NARROW, WIDE, Desk
from tests.browser.pages import addresses
from tests.web.test_step_health import made_health

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
HOW_TO = ROOT / "docs" / "how-to"
PAGES = (ROOT / "README.md", HOW_TO / "open-the-console.md")
LARGEST = 150_000  # bytes


@dataclass(frozen=True)
class Picture:
    """A picture of a page."""

    name: str
    page: str
    width: int
    height: int
    dark: bool = False


PICTURES = (
    Picture("console-overview", "overview", WIDE, 960),
    Picture("console-order", "waits", WIDE, 900, dark=True),
    Picture("console-group", "group", MIDDLE, 640),
    Picture("console-shift", "shift", MIDDLE, 1100),
    Picture("console-workflow", "workflow", WIDE, 720),
    Picture("console-agent", "agent", MIDDLE, 900),
    Picture("console-difference", "difference", WIDE, 800),
    Picture("console-correction", "resend", MIDDLE, 900, dark=True),
    Picture("console-narrow", "overview", NARROW, 720),
    Picture("console-narrow-order", "archived", NARROW, 720, dark=True),
)


def some_health(_stack: DeployedStack, steps: StepsToRead, period: str, at: int) -> Health:
    """Charges that fail since two hours; the CloudWatch of this stack has no percentiles."""
    return made_health(steps, period, at, bad=["charge_card"])


@pytest.fixture(scope="module", autouse=True)
def with_figures(patch: pytest.MonkeyPatch) -> None:
    """The stack has figures of CloudWatch."""
    patch.setattr(step_health, "read_health", some_health)


@pytest.fixture(scope="module")
def live_seconds() -> Mapping[str, float]:
    """Nothing happens in this stack, so no page need be read again."""
    return dict.fromkeys(LIVE_SECONDS, 3600.0)


def size_of(png: bytes) -> tuple[int, int]:
    """The width and height that a PNG says it has."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_the_docs_have_pictures_of_the_console(busy_desk: Desk, picture: Picture) -> None:
    page = busy_desk.tab(width=picture.width, dark=picture.dark)
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.goto(addresses(busy_desk)[picture.page])
    if picture.page == "resend":
        field = page.get_by_label("The message")
        corrected = field.input_value().replace('"euro"', '"EUR"')
        field.fill(corrected.replace(',\n  "colour": "red"', ""))
        with page.expect_navigation():
            page.get_by_role("button", name="Show what it would do").click()
    check(picture, page.screenshot())


def check(picture: Picture, made: bytes) -> None:
    """Compare a picture that was made with the stored one, or store it."""
    stored = IMAGES / f"{picture.name}.png"
    if os.environ.get("REWRITE_PAGES"):
        IMAGES.mkdir(exist_ok=True)
        stored.write_bytes(made)
    assert stored.is_file(), "make it: REWRITE_PAGES=1 pytest tests/browser/test_screenshots.py"
    assert size_of(stored.read_bytes()) == size_of(made) == (picture.width, picture.height)
    assert len(made) < LARGEST
    assert stored.stat().st_size < LARGEST


def test_each_picture_is_shown_somewhere_and_each_that_is_shown_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {path.stem for path in IMAGES.glob("*.png")} == {one.name for one in PICTURES}
    for picture in PICTURES:
        assert f"images/{picture.name}.png)" in text

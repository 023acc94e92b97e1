"""An application with other agents than the example's: what the rules must accept unchanged.

Its template is made from this project's as docs/how-to describes it: an agent is copied with the
script of wrap-a-service.md. Then one agent of the example is removed, and every other one renamed,
so that none of the example's agents is left.
"""

import re
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from roundsman import Compensation, Step, Undo, Workflow
from roundsman.testing.rules import Application

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "how-to" / "wrap-a-service.md"
COPIED = ("Payment", "payment")
ADDED = ("GiftWrap", "gift_wrap")
REMOVED = ("Shipping", "shipping")
RENAMED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Inventory", "inventory"): ("Warehouse", "warehouse"),
    ("Payment", "payment"): ("Billing", "billing"),
    ("Mail", "mail"): ("Letters", "letters"),
}

fetch = Step(
    name="fetch",
    agent="warehouse",
    complete_within=timedelta(seconds=20),
    compensation=Compensation(fences_late_performs=True),
)
wrap = Step(
    name="wrap",
    agents=("gift_wrap", "warehouse"),  # so that a step with several agents is among them
    after=(fetch,),
    complete_within=timedelta(seconds=30),
)
bill = Step(
    name="bill",
    agent="billing",
    after=(wrap,),
    complete_within=timedelta(seconds=60),
    compensation=Compensation(complete_within=timedelta(minutes=5)),
)
thank = Step(name="thank", agent="letters", after=(bill,), complete_within=timedelta(seconds=30))
present = Workflow(
    name="present",
    steps=(fetch, wrap, bill, thank),
    complete_within=timedelta(days=1),
    on_failure=Undo(),
    retain_for=timedelta(days=1),
)


def other_application(folder: Path) -> Application:
    """Write the template into the folder, and read it with its workflow."""
    path = folder / "template.yaml"
    path.write_text(other_template(), encoding="utf-8")
    return Application.read(path, (present,))


def other_template() -> str:
    """The template of the other application."""
    copy = _script_of_the_page()
    remove = copy.replace('printf "%s%s", block, copy;', "")
    assert remove != copy
    text = (PROJECT / "template.yaml").read_text(encoding="utf-8")
    text = _run(copy, text, old=COPIED, new=ADDED)
    text = _run(remove, text, old=REMOVED, new=REMOVED)
    for old, new in RENAMED.items():
        for one, other in zip(old, new, strict=True):
            text = re.sub(rf"(?<![A-Za-z]){one}(?![a-z])", other, text)
    return text


def _script_of_the_page() -> str:
    """The script of wrap-a-service.md that copies an agent."""
    found = re.search(r"<<'AWK'\n(.*?\n)AWK\n", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found[1]


def _run(script: str, text: str, *, old: tuple[str, str], new: tuple[str, str]) -> str:
    values = {"Old": old[0], "old": old[1], "New": new[0], "new": new[1]}
    options = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
    done = subprocess.run(
        ["awk", *options, script], input=text, check=True, capture_output=True, text=True
    )
    return done.stdout

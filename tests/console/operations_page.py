"""Pages with console blocks; each block is run again on a deployment of its own.

A block stands behind a comment that names its story: `<!-- run: declined -->`. In it, lines that
begin with `$` are typed, and lines that begin with `#` let happen what THINGS says. Everything
else is output, which `rerun` replaces by what was printed this time. With REWRITE_PAGES=1 in the
environment the tests write the pages instead of comparing them:

    REWRITE_PAGES=1 .venv/bin/python -m pytest tests/console/test_operations_page.py
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from roundsman.model.events import CommandSource, UndoPart
from roundsman.model.holds import BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import MINUTE
from roundsman.wire.commands import command_of
from roundsman_testing.stack import Stack
from tests.console.doctored import put_in_order, see_mappings_enabled
from tests.console.letter_stories import LETTER_STORIES, LETTER_THINGS
from tests.console.operators import CHARGED_LATER, DECLINED, Operator, holds_of
from tests.moto.orders import order

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

DOCS = Path(__file__).parents[2] / "docs"
RUNBOOK = DOCS / "runbook"
NIGHT = RUNBOOK / "night.md"
"""Its blocks are run by tests/emulator/test_night.py, on the deployed stack."""

ORDER = "ord-1001"

_BLOCK = re.compile(r"<!-- run: ([a-z-]+) -->\n```console\n(.*?)```\n", re.DOTALL)
A_RUN = "b-1a2b3c4d"
_MOTOS_USER = re.compile(r"\bAKIA\w{16}\b")
A_USER = "AROAEXAMPLEOPERATOR:amy"
"""Whom AWS authenticates, on the page."""
_RUN = re.compile(r"\bb-[0-9a-f]{8}\b")
_LOCK = re.compile(r"\b[0-9a-f]{4}-[0-9a-f]{10}\.(\d+)")


def pages() -> Iterator[Path]:
    """The pages that have console blocks to run here."""
    for page in sorted(DOCS.rglob("*.md")):
        if page != NIGHT and blocks(page.read_text(encoding="utf-8")):
            yield page


def page_of(story: str) -> Path:
    """The page that has this story."""
    return next(page for page in pages() if story in blocks(page.read_text(encoding="utf-8")))


def blocks(page: str) -> dict[str, str]:
    """The console blocks of the page, by their stories."""
    found = _BLOCK.findall(page)
    assert len(dict(found)) == len(found), "two stories have one name"
    return dict(found)


def replaced(page: str, story: str, block: str) -> str:
    """The page with this block for that story."""
    before = f"<!-- run: {story} -->\n```console\n"
    return page.replace(f"{before}{blocks(page)[story]}```", f"{before}{block}```")


def rerun(block: str, story: str, operator: Operator) -> str:
    """The block as it comes out this time."""
    STORIES[story](operator.world)
    if story.startswith("many-"):  # while the command waits, the supervisor carries the run out
        operator.patience.sleeping = lambda: operator.world.pass_time(2)
    shown: list[str] = []
    run = A_RUN
    for line in block.splitlines():
        if line.startswith("$ "):
            _, *words = shlex.split(line.removeprefix("$ ").replace(A_RUN, run))
            result = operator.types(*words)
            output = (result.stdout + result.stderr).splitlines()
            run = next(iter(_RUN.findall(result.stdout)), run)
            shown += [line, *(_steady(text) for text in output)]
            if result.exit_code:
                shown.append(f"(exit code {result.exit_code})")
        elif line.startswith("# "):
            THINGS[line.removeprefix("# ")](operator.world)
            shown.append(line)
    return "\n".join([*shown, ""])


def _steady(text: str) -> str:
    """Lock tokens and runs are drawn by lot; the page shows one and the same, of one principal."""
    named = _MOTOS_USER.sub(A_USER, _RUN.sub(A_RUN, text))
    return _LOCK.sub(r"7f3a-0c1d2e3f4a.\1", named).rstrip()


def _submitted(**content: object) -> Callable[[Stack], None]:
    def run(world: Stack) -> None:
        world.submit({**order(ORDER), **content})
        world.run()

    return run


def _many_failed(world: Stack) -> None:
    """Twelve orders whose confirmation is refused."""
    world.faults({"operation": "POST /messages", "status": 422})
    for number in range(1001, 1013):
        world.submit(order(f"ord-{number}"))
    world.run()


def _many_completed(world: Stack) -> None:
    """Twelve orders that were submitted two hours ago, and one of now.

    Of one of the twelve, all that can be undone is undone.
    """
    for number in range(1001, 1013):
        world.submit(order(f"ord-{number}"))
    world.run()
    asked = CommandSource("command-1", "amy", seen_version=world.task("ord-1005").version)
    parts = ("reserve_stock", "charge_card", "create_shipment", "send_confirmation")
    world.send("SchedulerQueue", command_of("ord-1005", UndoPart(asked, parts)).body())
    world.run()
    world.clock.now += 2 * 60 * MINUTE
    world.submit(order("ord-1013"))
    world.run()


def _met(fault: dict[str, object], **content: object) -> Callable[[Stack], None]:
    def run(world: Stack) -> None:
        world.faults(fault)
        _submitted(**content)(world)
        world.pass_time(20)

    return run


def _agent_died(world: Stack) -> None:
    world.kill("PaymentFunction", at="UpdateItem")
    _submitted()(world)


def _held(world: Stack) -> None:
    until = world.clock() + 1_800_000
    holds_of(world).hold(
        Hold("payment", OPERATOR, world.clock(), until, "acquirer maintenance", "amy")
    )


def _all_held(world: Stack) -> None:
    until = world.clock() + 1_800_000
    holds_of(world).hold(
        Hold("", OPERATOR, world.clock(), until, "wrong prices", "amy", workflow=EVERY_WORKFLOW)
    )


def _circuit_open(world: Stack) -> None:
    """As the breaker of the payment agent leaves it."""
    at, why = world.clock(), "5 calls in a row failed"
    holds_of(world).hold(Hold("payment", BREAKER, at, at + 30_000, why, "the circuit breaker"))


def _supervisor_died(world: Stack) -> None:
    """And a payment agent with it, ten minutes ago."""
    put_in_order(world)
    see_mappings_enabled()
    world.supervise()
    _agent_died(world)
    world.clock.now += 600_000


def _audited(world: Stack) -> None:
    """An order is completed, one is undone, one waits, and one has lost its order row."""
    for number in (1001, 1002):
        world.submit(order(f"ord-{number}"))
    world.submit({**order("ord-1003"), **DECLINED})
    world.run()
    world.faults(CHARGED_LATER)
    world.submit(order("ord-1004"))
    world.run()
    key: dict[str, AttributeValueTypeDef] = {"OrderID": {"S": "ord-1002"}}
    world.dynamodb.delete_item(TableName=world.stack.outputs["OrdersTableName"], Key=key)


STORIES: Mapping[str, Callable[[Stack], None]] = {
    "look": _met({"operation": "POST /messages", "status": 422}),
    "look-waiting": _met(CHARGED_LATER),
    "declined": _submitted(**DECLINED),
    "undo-failed": _met({"operation": "DELETE /reservations", "status": 422}, **DECLINED),
    "undo-by-hand": _met({"operation": "DELETE /reservations", "status": 422}, **DECLINED),
    "refused-for-good": _met({"operation": "POST /messages", "status": 422}),
    "did": _met({"operation": "POST /messages", "loseAnswer": True}),
    "extended": _agent_died,
    "many-orders": _many_failed,
    "many-completed": _many_completed,
    "held": lambda _: None,
    "released": _held,
    "circuit-open": _circuit_open,
    "held-all": lambda _: None,
    "released-all": _all_held,
    "doctor": _supervisor_died,
    "audited": _audited,
    **LETTER_STORIES,
}


def _serves_again(world: Stack) -> None:
    world.faults()
    world.clock.now += 60_000


THINGS: Mapping[str, Callable[[Stack], None]] = {
    "the service is mended": _serves_again,
    "an order comes": _submitted(),
    "15 seconds later": lambda world: world.pass_time(15),
    "a moment later": lambda world: world.pass_time(1),
    **LETTER_THINGS,
}

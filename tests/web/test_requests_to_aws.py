"""How many requests to AWS a page makes, as docs/how-to/open-the-console.md says."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from botocore.client import BaseClient

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import Records
from roundsman_console.faces.web.live import LIVE_SECONDS
from roundsman_console.faces.web.readings import plans_in_use
from roundsman_console.faces.web.work import WorkResult, works_of
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.doctored import put_in_order, visit
from tests.console.many_orders import ManyOrders
from tests.console.operators import CHARGED_LATER, DECLINED, document
from tests.moto.orders import order
from tests.project import deployed_project, of_each_agent
from tests.web.browsers import Browser

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "open-the-console.md"
MOST = 40
"""What the overview may ask in one reading, whatever the number of orders."""
ROW = re.compile(r"^\| `([^`]+)` \| ([0-9]+) \| (?:every ([0-9]+) s|once) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment with as many shards as the page has: some pages ask each of them."""
    parameters = {"Engine.DueShards": "16", **of_each_agent("BreakerFailures", "100")}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        yield world


@contextmanager
def requests_counted() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # what every call goes through

    def counted(self: BaseClient, operation: str, arguments: object) -> object:
        found[operation] += 1
        return make(self, operation, arguments)

    with patch.object(BaseClient, "_make_api_call", counted):
        yield found


@pytest.fixture(autouse=True)
def checked_apart(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor's check, which no reading of a page waits for, is not made here."""
    apart = "roundsman_console.faces.web.readings.background_checks.in_background"
    monkeypatch.setattr(apart, lambda _: None)


@pytest.mark.exhaustive
def test_the_page_has_the_requests_of_each_page_of_the_example(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED}, order("ord-2"))
    browser.operator.world.run()
    group = browser.operator.world.task("ord-1").failure
    start = ("resubmit", "--group", str(group), "--reason", "x", "--go", "--yes", "--no-wait")
    browser.operator.types(*start)
    runs = browser.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    work = works_of(browser.inspector).start("x", "/", lambda _: WorkResult("Done.", good=True))
    addresses = {
        "/progress/{work}": f"/progress/{work.id}",
        "/orders/{order}": "/orders/ord-1",
        "/orders/{order}/difference": "/orders/ord-1/difference?with=ord-2",
        "/agents/{agent}": "/agents/payment",
        "/groups/{group}": f"/groups/{group}",
        "/workflows/{plan}": f"/workflows/{browser.operator.world.task('ord-1').plan}",
        "/bulk/{run}": f"/bulk/{runs[0]['runId']}",
    }
    text = PAGE.read_text(encoding="utf-8")
    documented = {
        path: (int(many), float(every) if every else None)
        for path, many, every in ROW.findall(text)
    }
    seen = {}
    for path in documented:
        plans_in_use.forget(browser.inspector)
        with requests_counted() as found:
            browser.client.get(addresses.get(path, path))
        seen[path] = (found.total(), LIVE_SECONDS.get(path))
    assert seen == documented
    assert {*LIVE_SECONDS} <= {*documented}


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_large", [False, True], ids=["all in one page", "shard by shard"])
def test_the_overview_asks_at_most_40_times_and_sees_everything_after_some_readings(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    if is_large:
        monkeypatch.setattr(Records, "all_if_few", lambda _: None)
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    world.faults({**CHARGED_LATER, "times": 400})
    world.submit(*(order(f"ord-{place}") for place in range(2, 42)))
    world.run()
    asked = []
    for _ in range(6):
        asked.append(asked_for(browser, "/"))
        world.clock.now += 30_000
    assert max(asked) <= MOST, asked
    page = browser.page("/")
    assert "order_fulfilment, charge_card 40" in page
    assert "1 Undone" in page
    assert "0 Archived" in page
    assert "The page reads on." in page, "the doctor has not checked the stack"
    assert "not looked at" not in page
    assert "parts of the index" not in page
    assert ("counted longest ago" in page) is is_large


@pytest.mark.exhaustive
@pytest.mark.parametrize("shards", [16, 1], ids=["all shards", "one shard"])
def test_of_200_000_open_orders_the_doctor_reads_the_1_000_that_are_due_first(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    world = browser.operator.world
    put_in_order(world)
    world.faults(CHARGED_LATER)
    world.submit(order("ord-1"))
    world.run()
    world.supervise()
    browser.page("/doctor")  # what is read once is read now
    of_few = asked_for(browser, "/doctor")
    del vars(browser.inspector.stack)["records"]
    many = ManyOrders.copies(world.task("ord-1"), 200_000, shards)
    monkeypatch.setattr(DeployedStack, "records", many.records())
    asked = asked_for(browser, "/doctor") + many.requests.total()
    assert many.requests["BatchGetItem"] == 10
    assert asked - of_few == (9 if shards > 1 else 19)
    assert "`/doctor` takes at most 20 more" in PAGE.read_text(encoding="utf-8")
    page = browser.page("/doctor")
    assert re.search(r"Checked 1\s000 open orders", page)
    assert "There are more open orders: those that are due first were checked" in page
    found = document(visit(browser.operator))
    assert found["looked"] == {"open": 1_000, "archived": 0, "cut": ["open"], "deepRows": None}
    visit(browser.operator, "--limit", "1500")
    assert many.requests["BatchGetItem"] == 10 + 10 + 10 + 15


def asked_for(browser: Browser, path: str) -> int:
    """How many requests a page makes."""
    with requests_counted() as found:
        browser.client.get(path)
    return found.total()

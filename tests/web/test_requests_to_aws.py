"""How many requests to AWS a page makes, as docs/how-to/open-the-console.md says."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from botocore.client import BaseClient

from roundsman_console.faces.web.live import LIVE_SECONDS
from roundsman_console.faces.web.work import WorkResult, works_of
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import CHARGED_LATER, DECLINED
from tests.moto.orders import order
from tests.project import deployed_project, of_each_agent
from tests.web.browsers import Browser

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "open-the-console.md"
AGAIN = re.compile(r"The next readings of `/` take ([0-9]+)")
WITH_OPEN = re.compile(r"While orders are open, `/` takes at most ([0-9]+) more")
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


@pytest.mark.exhaustive
def test_the_page_has_the_requests_of_each_page_of_the_example(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
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
        with requests_counted() as found:
            browser.client.get(addresses.get(path, path))
        seen[path] = (found.total(), LIVE_SECONDS.get(path))
    assert seen == documented
    assert {*LIVE_SECONDS} <= {*documented}
    again = asked_for(browser, "/")
    assert AGAIN.findall(" ".join(text.split())) == [str(again)]
    browser.operator.world.faults({**CHARGED_LATER, "times": 40})
    browser.operator.world.submit(*(order(f"ord-{place}") for place in range(2, 42)))
    browser.operator.world.run()
    assert "order_fulfilment, charge_card 40" in browser.page("/")
    [most] = WITH_OPEN.findall(" ".join(text.split()))
    assert again < asked_for(browser, "/") <= again + int(most), "no request for each order"


def asked_for(browser: Browser, path: str) -> int:
    """How many requests a page makes."""
    with requests_counted() as found:
        browser.client.get(path)
    return found.total()

"""Somebody who reads every page of a stack in which everything has happened."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from roundsman_console.inspector import Inspector
from tests.browser.pages import addresses
from tests.browser.stories import busy
from tests.console.operators import Operator
from tests.moto.orders import order
from tests.web.browsers import Browser


@dataclass(frozen=True)
class Server:
    inspector: Inspector


@dataclass(frozen=True)
class Reader:
    operator: Operator
    server: Server
    browser: Browser

    def pages(self) -> Iterator[tuple[str, str]]:
        """The names and the markup of all pages."""
        for name, address in addresses(self).items():
            yield name, self.browser.client.get(address).text


def reader_of(browser: Browser) -> Reader:
    """Let everything happen, with a bulk run that goes on."""
    operator = browser.operator
    busy(operator)
    dead(operator, json.dumps(order("ord-9001")))
    group = str(operator.world.task("ord-2100").failure)
    go = ("--reason", "x", "--go", "--yes", "--no-wait")
    assert operator.types("resubmit", "--group", group, *go).exit_code == 0
    return Reader(operator, Server(browser.inspector), browser)


def dead(operator: Operator, *bodies: str) -> None:
    """Messages that SQS has moved to the dead letters of submission."""
    world = operator.world
    for body in bodies:
        world.sqs.send_message(QueueUrl=world.url("SubmissionDeadLetterQueue"), MessageBody=body)

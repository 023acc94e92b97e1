"""Serves the console of the shop in memory: one process, no AWS, nothing but 127.0.0.1."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from roundsman.aws.clock import now
from roundsman.ports import Clock
from roundsman.submission.events import EventReader
from roundsman_console.aws.stack import find_stack
from roundsman_console.faces.web.access.one_browser import BrowserSession
from roundsman_console.faces.web.server import serve_as_is
from roundsman_console.faces.web.whereabouts import Colour, Whereabouts
from roundsman_console.inspector import Inspector
from roundsman_testing.first_look.guide import ShopGuide
from roundsman_testing.first_look.shop import Shop
from roundsman_testing.world.aws import NAME

WHERE: Final = Whereabouts(
    NAME, local="in memory; nothing here is real", in_memory=True, colour=Colour.GREEN
)


@dataclass(frozen=True, slots=True)
class FirstLook:
    """A shop that is open, and what its console needs."""

    shop: Shop
    inspector: Inspector
    guide: ShopGuide


@contextmanager
def open_shop(on_alert: Callable[[str], None], clock: Clock = now) -> Iterator[FirstLook]:
    """Open a new shop, whose orders go on in a thread until the end of the context.

    Every client of boto3 that is made meanwhile belongs to its AWS. `on_alert` is called in another
    thread with the subject of each alert. `clock` is the present of the shop in epoch ms.
    """
    shop, stop = Shop(clock, on_alert), threading.Event()
    with shop.aws.in_use():
        inspector = Inspector(find_stack(NAME, EventReader(shop.world.workflows)))
        running = threading.Thread(target=shop.run, args=(stop,), name="shop", daemon=True)
        running.start()
        try:
            yield FirstLook(shop, inspector, ShopGuide(shop))
        finally:
            stop.set()
            running.join()


def serve_first_look(
    *,
    port: int | None,
    loopback: bool,
    opened: Callable[[BrowserSession], None],
    on_alert: Callable[[str], None],
) -> None:
    """Serve the console of a new shop until Ctrl-C.

    `port`, `loopback` and `opened` are those of `roundsman_console.faces.web.server.serve`, and
    `on_alert` that of `open_shop`. Raises InspectorError if the port is in use.
    """
    with open_shop(on_alert) as look:
        serve_as_is(
            look.inspector,
            port=port,
            read_only=False,
            opened=opened,
            loopback=loopback,
            where=lambda: WHERE,
            guide=look.guide,
        )

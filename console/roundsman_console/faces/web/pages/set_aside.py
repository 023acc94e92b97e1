"""Dead letters and rejected messages. Reading a queue hides its messages for some seconds."""

from collections.abc import Mapping

from roundsman_console.facts.set_aside.assess import order_of
from roundsman_console.facts.set_aside.rejections import list_rejected
from roundsman_console.inspector import Inspector

MOST = 50


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the dead letters by the queue that they come from."""
    return {"queues": inspector.dead_letters(limit=MOST), "order_of": order_of}


def read_rejected(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the rejected messages, with why each was rejected."""
    return {"found": list_rejected(inspector.stack, MOST), "order_of": order_of}

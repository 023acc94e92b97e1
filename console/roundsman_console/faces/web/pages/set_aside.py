"""Dead letters and rejected messages. Reading a queue hides its messages for some seconds."""

from collections.abc import Mapping

from roundsman_console.facts.set_aside.messages import look_at, rejected_queue
from roundsman_console.inspector import Inspector

MOST = 50


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the dead letters by the queue that they come from."""
    return {"queues": inspector.dead_letters(limit=MOST)}


def read_rejected(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the rejected messages, with why each was rejected."""
    [found] = look_at([rejected_queue(inspector.stack)], MOST)
    return {"found": found}

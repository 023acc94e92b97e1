"""Dead letters and rejected messages. Reading a queue hides its messages for some seconds."""

from collections.abc import Mapping

from roundsman_console.facts.set_aside.messages import look_at, rejected_queue
from roundsman_console.inspector import Inspector

MOST = 50
MOST_PROBLEMS = 20
"""The number of problems of a message that are listed."""
MOST_TEXT = 4_000
"""The number of characters of a reason that are shown."""


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the dead letters by the queue that they come from."""
    return {"queues": inspector.dead_letters(limit=MOST), "most_text": MOST_TEXT}


def read_rejected(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the rejected messages, with why each was rejected."""
    [found] = look_at([rejected_queue(inspector.stack)], MOST)
    return {"found": found, "most_problems": MOST_PROBLEMS, "most_text": MOST_TEXT}

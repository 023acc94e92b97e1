"""When a message whose handling AWS throttled is delivered again."""

from roundsman.model.instants import SECOND

LONGEST_RUN = 20 * SECOND
"""ms; the longest timeout that the template allows a function that reads a queue of the engine."""


def hidden_for(visibility: int, receives: int, drawn: float) -> int | None:
    """How long a throttled message stays hidden from now on, in ms; None for its queue's time.

    `visibility` is the visibility timeout of its queue in ms. A message that was received once
    comes again when that is over: it may have claimed a step without sending the request, and must
    come again before the attempt is overdue. One that is throttled again stays hidden for longer,
    by a share that `drawn` (0 to 1) decides, so that such messages do not all come back at once.

    The message was received at most LONGEST_RUN ago, so it is hidden for less than twice
    `visibility` in all. How long a reply can be hidden must be known: a timeout is counted only
    after that.
    """
    if receives < 2:
        return None
    return visibility + round(drawn * (visibility - LONGEST_RUN))

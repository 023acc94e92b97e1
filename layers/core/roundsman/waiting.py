"""Whether replies of an agent's batch may wait for its next attempt, to go out in one request.

Only where that can make none of them late or silent, and hardly slow: whoever gives an agent
several requests at once chose fewer requests over speed, and no more than that.
"""

from roundsman.values import SECOND, spoken

WAITS_FOR = 100
"""ms, of the reply that has waited for longest. A quick attempt is over in less."""

SENT_WITHIN = SECOND // 4
"""What sending the replies takes at most, of the first one's time."""


def why_sent_first(*, since: int, until: int, attempt_ends_at: int, now: int) -> str | None:
    """Why replies go out before the next attempt begins; None where they may wait for its end.

    The oldest of them has waited `since`, and the first of them may not be sent from `until` on.
    All instants are epoch ms.
    """
    if now - since >= WAITS_FOR:
        return f"a reply has waited for {spoken(now - since)}"
    if attempt_ends_at + SENT_WITHIN > until:
        return "the next attempt may end too late for a reply that waits"
    return None

"""Checks the queue that an application names as `replyTo`.

The stack's roles may send only to queues that pass this check.
"""

import re

QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def usable_reply_queue(url: str, own_queue_url: str, prefix: str) -> str | None:
    """Why `url` cannot be a reply queue, as the end of a sentence; None if it can.

    A reply queue is a standard queue in the account and region of `own_queue_url` (any queue of the
    stack), and its name starts with `prefix`. The function does not check whether the queue exists.
    """
    beside, _, _ = own_queue_url.rpartition("/")
    account, _, name = url.rpartition("/")
    if name.endswith(".fifo"):
        return "is a FIFO queue; a reply queue must be a standard queue"
    if account != beside:
        return f"is not the URL of a queue of this account and region, {beside}/<name>"
    if not name.startswith(prefix) or not QUEUE_NAME.fullmatch(name):
        return f"does not name a reply queue of this stack: the name starts with {prefix}"
    return None

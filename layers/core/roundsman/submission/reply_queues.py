"""Which queues an application may name as `replyTo`: those the stack's roles may send to."""

import re

QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def usable_reply_queue(url: str, own_queue_url: str, prefix: str) -> str | None:
    """What is wrong with `url` as a reply queue, as a sentence's end; None where it is usable.

    A usable one is the URL of a standard queue of the account and region of `own_queue_url` (any
    queue of the stack), and its name starts with `prefix`. Whether the queue exists is not asked.
    """
    beside, _, _ = own_queue_url.rpartition("/")
    account, _, name = url.rpartition("/")
    if name.endswith(".fifo"):
        return "is a FIFO queue; only standard queues are sent to"
    if account != beside:
        return f"is not the URL of a queue of this account and region, {beside}/<name>"
    if not name.startswith(prefix) or not QUEUE_NAME.fullmatch(name):
        return f"does not name a reply queue of this stack: the name starts with {prefix}"
    return None

"""The URLs of the agents' queues, which follow from the URL of the SchedulerQueue.

The queues of the stack `shop` are `shop-SchedulerQueue` and, for the agent `payment_backup`,
`shop_PaymentBackupRequestQueue`, `shop_PaymentBackupUrgentRequestQueue` and
`shop_PaymentBackupReplyQueue`. The name of a stack has no underscore, so the names of two stacks
never begin alike, and a role's right to `shop_*RequestQueue` is for this stack alone.
"""

from roundsman.model.priority import Priority

SCHEDULER_QUEUE = "-SchedulerQueue"


def agent_title(agent: str) -> str:
    """Return the agent's name as in the names of its queues: PaymentBackup for payment_backup."""
    return "".join(word[:1].upper() + word[1:] for word in agent.split("_"))


def request_queue_url(scheduler_queue_url: str, agent: str, priority: str) -> str:
    """Return the URL of an agent's request queue."""
    urgent = "Urgent" if priority == Priority.URGENT else ""
    return f"{_stack(scheduler_queue_url)}_{agent_title(agent)}{urgent}RequestQueue"


def reply_queue_url(scheduler_queue_url: str, agent: str) -> str:
    """Return the URL of an agent's reply queue."""
    return f"{_stack(scheduler_queue_url)}_{agent_title(agent)}ReplyQueue"


def _stack(scheduler_queue_url: str) -> str:
    """The URL up to the name of the stack. Raises ValueError if it is not of a SchedulerQueue."""
    if not scheduler_queue_url.endswith(SCHEDULER_QUEUE):
        raise ValueError(f"the URL of the SchedulerQueue must end in {SCHEDULER_QUEUE}")
    return scheduler_queue_url.removesuffix(SCHEDULER_QUEUE)

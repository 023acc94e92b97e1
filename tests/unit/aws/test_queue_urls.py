"""The URLs of agents' queues follow from that of the SchedulerQueue."""

import pytest

from roundsman.aws.queue_urls import agent_title, reply_queue_url, request_queue_url

SCHEDULER = "https://sqs.eu-west-1.amazonaws.com/111122223333/shop-SchedulerQueue"
STACK = "https://sqs.eu-west-1.amazonaws.com/111122223333/shop"


@pytest.mark.parametrize(
    ("agent", "title"),
    [
        ("payment", "Payment"),
        ("payment_backup", "PaymentBackup"),
        ("mail_2", "Mail2"),
        ("a_b_", "AB"),
    ],
)
def test_the_title_of_an_agent_has_a_capital_for_each_word(agent: str, title: str) -> None:
    assert agent_title(agent) == title


def test_the_queues_of_an_agent_are_named_after_the_stack_and_the_agent() -> None:
    backup = "payment_backup"
    assert request_queue_url(SCHEDULER, backup, "normal") == f"{STACK}_PaymentBackupRequestQueue"
    urgent = f"{STACK}_PaymentBackupUrgentRequestQueue"
    assert request_queue_url(SCHEDULER, backup, "urgent") == urgent
    assert reply_queue_url(SCHEDULER, backup) == f"{STACK}_PaymentBackupReplyQueue"


def test_a_url_of_another_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="must end in -SchedulerQueue"):
        reply_queue_url(f"{STACK}-SubmissionQueue", "payment")

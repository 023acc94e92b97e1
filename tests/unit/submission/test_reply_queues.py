"""Which URLs an application may name as replyTo."""

import pytest

from roundsman.submission.reply_queues import usable_reply_queue

BESIDE = "https://sqs.eu-west-1.amazonaws.com/123456789012"
OWN = f"{BESIDE}/shop-SchedulerQueue"
LOCAL = "http://127.0.0.1:4566/000000000000"
PREFIX = "shop-reply-"


@pytest.mark.parametrize(
    "name", ["shop-reply-web", "shop-reply-A_9", "shop-reply-", f"{PREFIX:x<80}"]
)
def test_a_standard_queue_of_this_account_with_the_prefix_is_usable(name: str) -> None:
    assert usable_reply_queue(f"{BESIDE}/{name}", OWN, PREFIX) is None


def test_so_it_is_on_an_emulator() -> None:
    own = f"{LOCAL}/shop-SchedulerQueue"
    assert usable_reply_queue(f"{LOCAL}/shop-reply-web", own, PREFIX) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/999999999999/shop-reply-web", "this account"),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/shop-reply-web", "region"),
        ("http://sqs.eu-west-1.amazonaws.com/123456789012/shop-reply-web", "region"),
        ("https://evil.example/123456789012/shop-reply-web", "this account"),
        ("https://sqs.eu-west-1.amazonaws.com@evil.example/123456789012/shop-reply-web", "account"),
        (f"{BESIDE}/shop-reply-web/shop-reply-x", "this account"),
        (f"{BESIDE}/../123456789012/shop-reply-web", "this account"),
        (f"{BESIDE}/shop-reply-web.fifo", "FIFO"),
        (f"{BESIDE}/shop-SchedulerQueue", "starts with shop-reply-"),
        (f"{BESIDE}/other-reply-web", "starts with shop-reply-"),
        (f"{BESIDE}/shop-reply-web?x=1", "starts with shop-reply-"),
        (f"{BESIDE}/shop-reply-web\n", "starts with shop-reply-"),
        (f"{BESIDE}/shop-reply-wéb", "starts with shop-reply-"),
        (f"{BESIDE}/{PREFIX:x<81}", "starts with shop-reply-"),
        ("shop-reply-web", "this account"),
        ("arn:aws:sqs:eu-west-1:123456789012:shop-reply-web", "this account"),
        ("", "this account"),
    ],
)
def test_any_other_is_refused_with_the_reason(url: str, why: str) -> None:
    problem = usable_reply_queue(url, OWN, PREFIX)
    assert problem is not None
    assert why in problem

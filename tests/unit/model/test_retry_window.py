"""The retry window: from the first failure on, and longer after an unexpected error."""

import pytest

from roundsman.model.retry_window import CLOSED, UNEXPECTED_RETRIED_FOR, RetryWindow

NOW, KEEP = 1_000_000, 500
OPEN = RetryWindow(until=NOW + 300, waits=2)
BUG = RetryWindow(until=NOW + 300, unexpected_since=NOW - 9, waits=2)
LONG = UNEXPECTED_RETRIED_FOR + 1


@pytest.mark.parametrize(
    ("window", "keep", "unexpected", "expected"),
    [
        (OPEN, None, False, RetryWindow(waits=2)),
        (BUG, 0, True, RetryWindow(waits=2)),
        (CLOSED, KEEP, False, RetryWindow(until=NOW + KEEP)),
        (OPEN, KEEP, False, OPEN),
        (BUG, KEEP, False, BUG),
        (BUG, KEEP, True, BUG),
        (
            OPEN,
            KEEP,
            True,
            RetryWindow(until=NOW + UNEXPECTED_RETRIED_FOR, unexpected_since=NOW, waits=2),
        ),
        (
            RetryWindow(unexpected_since=NOW - 9),
            KEEP,
            True,
            RetryWindow(until=NOW + UNEXPECTED_RETRIED_FOR, unexpected_since=NOW - 9),
        ),
        (CLOSED, LONG, True, RetryWindow(until=NOW + LONG, unexpected_since=NOW)),
    ],
)
def test_a_failure_opens_the_window_and_an_unexpected_error_makes_it_longer_once(
    window: RetryWindow, keep: int | None, unexpected: bool, expected: RetryWindow
) -> None:
    assert window.after_failure(NOW, keep, unexpected=unexpected) == expected


def test_only_an_open_window_moves_and_counts_waits() -> None:
    assert OPEN.later(7) == RetryWindow(until=NOW + 307, waits=2)
    assert OPEN.waited() == RetryWindow(until=NOW + 300, waits=3)
    assert CLOSED.later(7) == CLOSED.waited() == CLOSED
    assert CLOSED.waited(by_type=True) == RetryWindow(waits=1)


def test_one_attempt_begins_after_the_window() -> None:
    assert not OPEN.is_over(NOW + 299)
    assert OPEN.is_over(NOW + 300)
    assert CLOSED.is_over(0)

"""When replies of an agent's batch may wait for the attempt after them."""

import pytest

from roundsman.aws.sqs.send_buffer import SENT_WITHIN, WAITS_FOR, why_sent_first

NOW = 1_800_000_000_000
UNTIL = NOW + 30_000


@pytest.mark.parametrize("age", [0, WAITS_FOR - 1])
@pytest.mark.parametrize("attempt_ends_at", [0, NOW + 1, UNTIL - SENT_WITHIN])
def test_they_wait_while_they_are_young_and_the_attempt_ends_in_time(
    age: int, attempt_ends_at: int
) -> None:
    assert (
        why_sent_first(since=NOW - age, until=UNTIL, attempt_ends_at=attempt_ends_at, now=NOW)
        is None
    )


def test_none_waits_for_a_second_attempt_after_a_slow_one() -> None:
    why = why_sent_first(since=NOW - WAITS_FOR, until=UNTIL, attempt_ends_at=NOW, now=NOW)
    assert why == "a reply has waited for 100 ms"


@pytest.mark.parametrize("attempt_ends_at", [UNTIL - SENT_WITHIN + 1, UNTIL, UNTIL + 1])
def test_none_waits_for_an_attempt_that_may_outlast_its_own_time(attempt_ends_at: int) -> None:
    why = why_sent_first(since=NOW, until=UNTIL, attempt_ends_at=attempt_ends_at, now=NOW)
    assert why == "the next attempt may end too late for a waiting reply"

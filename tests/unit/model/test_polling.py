"""The polling of a step: its end, its count and when the next poll is."""

from roundsman.model.polling import SHORTEST_INTERVAL, Polling

NOW = 1_000_000


def test_it_lasts_for_the_time_of_its_first_reply_and_a_second_at_least() -> None:
    assert Polling.begun(NOW, 5_000) == Polling(count=1, since=NOW, until=NOW + 5_000)
    assert Polling.begun(NOW, 0).until == NOW + SHORTEST_INTERVAL


def test_another_reply_counts_and_moves_no_time() -> None:
    polling = Polling.begun(NOW, 5_000)
    assert polling.again() == Polling(count=2, since=NOW, until=NOW + 5_000)
    assert polling.later(7) == Polling(count=1, since=NOW, until=NOW + 5_007)


def test_it_is_over_at_its_end() -> None:
    polling = Polling.begun(NOW, 5_000)
    assert [polling.is_over(NOW + at) for at in (4_999, 5_000)] == [False, True]


def test_the_next_poll_is_a_second_later_at_least_and_no_later_than_the_end() -> None:
    polling = Polling.begun(NOW, 5_000)
    found = [polling.next_poll(NOW, after) for after in (0, 2_000, 9_000)]
    assert found == [NOW + SHORTEST_INTERVAL, NOW + 2_000, NOW + 5_000]

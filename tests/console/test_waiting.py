"""Waiting that ends: as soon as something is seen, and no later than asked."""

from collections.abc import Iterator

import pytest

from roundsman_console.base import clock as polling
from tests.console.operators import Patience


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    found = Patience(lambda: None)
    monkeypatch.setattr(polling, "time", found)
    return found


def test_what_is_there_already_is_not_waited_for(patience: Patience) -> None:
    assert polling.wait_for(lambda: "found", 5) == "found"
    assert patience.slept == []


def test_it_ends_as_soon_as_something_is_seen(patience: Patience) -> None:
    looks: Iterator[str | None] = iter([None, None, "found"])
    assert polling.wait_for(lambda: next(looks), 5) == "found"
    assert patience.slept == [0.25, 0.25]


def test_it_waits_no_longer_than_asked_and_looks_once_more_at_the_end(
    patience: Patience,
) -> None:
    looked: list[float] = []

    def look() -> None:
        looked.append(patience.now)

    assert polling.wait_for(look, 0.6) is None
    assert looked == pytest.approx([0, 0.25, 0.5, 0.6])

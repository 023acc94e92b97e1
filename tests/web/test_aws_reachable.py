"""Whether AWS is reached: one read for all who ask, in time, and with the reason if it is not."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE, SECOND
from roundsman_console.aws.ping import PING_SECONDS, Ping
from roundsman_console.faces.web import aws_reachable, deadlines, live
from roundsman_console.faces.web.aws_reachable import (
    MOST_UNENDED,
    AwsReachable,
    Note,
    Reached,
    answer_of,
)
from roundsman_console.faces.web.whereabouts import Whereabouts
from tests.web.passed_time import PassedTime

EXPIRED = ClientError({"Error": {"Code": "ExpiredTokenException"}}, "GetItem")
SLOW = "Cannot call AWS: DynamoDB did not answer within 2 s. Check the network and the way to AWS."
WHERE = Whereabouts("shop")
HOUR = 60 * MINUTE


@dataclass
class Aws:
    """An AWS that answers after some seconds, or with an error, or not at all."""

    loop: PassedTime
    takes: float = 0.0
    """In seconds; below 0 if it does not answer."""
    error: Exception | None = None
    ping: Ping = field(default_factory=lambda: Ping(visited_at=1))
    asked_at: list[float] = field(default_factory=list)
    goes_on: list["asyncio.Event"] = field(default_factory=list)

    async def read(self) -> Ping:
        self.asked_at.append(self.loop.time())
        if self.takes < 0:
            self.goes_on.append(asyncio.Event())
            await self.goes_on[-1].wait()
        await asyncio.sleep(self.takes)  # of a time that is passed
        if self.error is not None:
            raise self.error
        return self.ping


@dataclass(frozen=True)
class Console:
    """What all tabs of a process ask."""

    loop: PassedTime
    aws: Aws
    reachable: AwsReachable

    def asks_at(self, at: float) -> Reached:
        """What a tab is answered that asks at this moment."""
        self.loop.now = max(self.loop.now, at)
        return self.loop.run(self.reachable.ask())


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    loop = PassedTime()
    aws = Aws(loop)
    # The supervisor has passed at the beginning, so it is silent after a while.
    monkeypatch.setattr(aws_reachable, "now", lambda: 1 + round(loop.now * SECOND))
    yield Console(loop, aws, AwsReachable(aws.read, WHERE, MINUTE, clock=loop.time))
    for event in aws.goes_on:
        event.set()
    loop.run(asyncio.sleep(0))
    loop.close()


def test_aws_is_asked_only_when_a_page_asks_and_at_most_every_three_seconds(
    console: Console,
) -> None:
    assert console.aws.asked_at == []
    for at in (0.0, 0.1, 1.0, 2.9, 3.0, 3.1, 100.0, 102.9):
        console.asks_at(at)
    assert console.aws.asked_at == [0.0, 3.0, 100.0]


def test_all_tabs_that_ask_at_the_same_time_are_answered_by_one_read(console: Console) -> None:
    console.aws.takes = 1.5

    async def nine() -> list[Reached]:
        return await asyncio.gather(*(console.reachable.ask() for _ in range(9)))

    answers = console.loop.run(nine())
    assert console.aws.asked_at == [0.0]
    assert {answer.answered_after for answer in answers} == {1.5}


def test_an_answer_says_when_aws_answered_and_when_to_ask_again(console: Console) -> None:
    console.aws.takes = 0.5
    assert console.asks_at(0.0) == Reached(answered_after=0.5, why="", next_after=3.0)
    assert console.asks_at(2.0) == Reached(answered_after=-1.5, why="", next_after=1.0)


def test_a_read_that_takes_too_long_is_given_up_and_the_next_one_may_succeed(
    console: Console,
) -> None:
    console.asks_at(0.0)
    console.aws.takes = -1
    assert console.asks_at(3.0) == Reached(answered_after=-3.0, why=SLOW, next_after=3.0)
    assert console.loop.now == 3.0 + PING_SECONDS
    console.aws.takes = 0
    assert console.asks_at(6.0) == Reached(answered_after=0.0, why="", next_after=3.0)


def test_an_error_is_a_sentence_and_the_next_answer_takes_it_back(console: Console) -> None:
    console.aws.error = EXPIRED
    reached = console.asks_at(0.0)
    assert reached.answered_after is None
    assert reached.why == "The AWS credentials have expired. Sign in again."
    console.aws.error = None
    assert console.asks_at(3.0).why == ""


def test_reads_that_do_not_end_are_not_piled_up(console: Console) -> None:
    console.aws.takes = -1
    for place in range(10):
        assert console.asks_at(3.0 * place).why == SLOW
    assert len(console.aws.asked_at) == MOST_UNENDED
    console.aws.goes_on[0].set()
    console.aws.takes = 0
    assert console.asks_at(30.0).why == SLOW, "one of them ends with this question"
    assert console.asks_at(33.0).why == ""


def test_one_read_at_a_time_also_if_the_process_stood_still_meanwhile(console: Console) -> None:
    console.aws.takes = 1.0

    async def two() -> Sequence[Reached]:
        first = asyncio.ensure_future(console.reachable.ask())
        await asyncio.sleep(0.5)
        console.loop.now += 10.0
        return await asyncio.gather(first, console.reachable.ask())

    answers = console.loop.run(two())
    assert console.aws.asked_at == [0.0]
    assert [one.next_after for one in answers] == [3.0, 0.0]


def test_a_browser_that_goes_away_does_not_end_the_read_of_the_others(console: Console) -> None:
    console.aws.takes = 1.0

    async def two() -> Reached:
        first = asyncio.ensure_future(console.reachable.ask())
        second = asyncio.ensure_future(console.reachable.ask())
        await asyncio.sleep(0.5)
        first.cancel()
        return await second

    assert console.loop.run(two()).answered_after == 1.0


def test_an_error_that_is_none_of_aws_is_not_hidden_and_does_not_last(console: Console) -> None:
    console.aws.error = LookupError("a fault of the console")
    with pytest.raises(LookupError):
        console.asks_at(0.0)
    console.aws.error = None
    assert console.asks_at(3.0).why == ""


def test_the_supervisor_is_said_to_be_silent_within_130_seconds_of_its_last_pass(
    console: Console,
) -> None:
    said_at = None
    at = 0.0
    while said_at is None:
        console.aws.takes = 1.9  # as slow as it may be
        at += console.asks_at(at).next_after
        if console.reachable.notes():
            said_at = console.loop.now
    assert 120 < said_at <= 130
    assert console.reachable.notes() == (
        Note(
            "The supervisor does not run: nothing that is overdue is found, and no alert is sent.",
            last_pass_at=1,
        ),
    )


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
def test_a_clock_that_is_an_hour_off_is_said_and_does_not_make_the_supervisor_silent(
    console: Console, ahead: int
) -> None:
    console.aws.ping = Ping(visited_at=1 - ahead, clock_ahead=ahead)
    console.asks_at(0.0)
    [note] = console.reachable.notes()
    which = "ahead of" if ahead > 0 else "behind"
    assert note.sentence.startswith(f"The clock of this machine is 1 h {which} that of AWS")
    console.aws.ping = Ping(visited_at=1, clock_ahead=0)
    console.asks_at(3.0)
    assert console.reachable.notes() == (), "it was set"


def test_what_was_found_is_not_said_when_nobody_has_asked_for_a_while(console: Console) -> None:
    console.aws.ping = Ping(visited_at=None)
    console.asks_at(0.0)
    assert "has never run" in console.reachable.notes()[0].sentence
    console.loop.now = live.LIVE_FOR + 0.1
    assert console.reachable.notes() == ()


def test_the_answer_is_in_milliseconds(console: Console) -> None:
    console.aws.takes = 0.25
    reached = console.asks_at(0.0)
    assert answer_of(reached, [Note("It is so."), Note("Silent.", last_pass_at=1_000)]) == {
        "answeredAfter": 250,
        "why": "",
        "nextAfter": 3000,
        "notes": [
            {"sentence": "It is so.", "lastPassAt": None},
            {"sentence": "Silent.", "lastPassAt": "1970-01-01T00:00:01.000Z"},
        ],
    }


def test_the_times_of_a_page_keep_the_promise_of_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadlines, "PAGE_SECONDS", 10.0)
    assert live.live_times() == live.LiveTimes(
        ask_every=3000, ask_within=3000, stale_after=4800, page_within=11_000
    )
    assert live.LIVE_FOR < 5, "the promise"
    assert live.PING_EVERY + 1.8 <= live.LIVE_FOR, "an AWS that is slow, and answers, is live"

"""What a bulk run does next, decided purely: the canary, the rate, the share, the end."""

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.engine import bulk_moves
from roundsman.engine.bulk_moves import (
    LEAST,
    PAGE,
    CheckOrders,
    Finish,
    GiveUp,
    NextMove,
    Send,
    Stop,
    WaitUntil,
    too_many_failed,
)
from roundsman.model.bulk_run import (
    FIRST_LOOK,
    LONGEST_LOOK,
    MOST_KINDS,
    SAMPLES,
    THE_REST,
    WINDOW,
    BulkRecord,
    InFlightOrder,
    OrderGroup,
    OrderResult,
    Run,
    RunProgress,
    RunState,
    Terms,
    nothing_new,
    resumed,
    taken_up,
    to_send_again,
    turned_down,
    were_sent,
    with_one,
    with_result,
)
from roundsman.model.events import CommandSource, Resubmit

NOW = 1_800_000_000_000
AHEAD = 20_000
ONE_BY_ONE = ("f-00000000", "charge_card: CardDeclined")


def a_run(selected: int = 20, **terms: float) -> Run:
    asked = CommandSource("b-00000000", "amy", "the acquirer is back")
    found = Terms(**{"canary": 5, **terms})  # type: ignore[arg-type]  # numbers of either kind
    return Run(
        "b-00000000", Resubmit(asked), "amy", "AROA:amy", "", "--group f-1", NOW, selected, found
    )


def next_move(
    run: Run, progress: RunProgress, now: int, state: RunState = RunState.RUNNING
) -> NextMove:
    return bulk_moves.next_move(BulkRecord(run, progress, state), now, now + AHEAD)


def sent(progress: RunProgress, run: Run, count: int, now: int = NOW) -> RunProgress:
    """So many more of the plan, taken up and sent."""
    orders = [f"ord-{progress.reached + place}" for place in range(count)]
    taken = taken_up(progress, [InFlightOrder(order) for order in orders], [], run.terms, now)
    return were_sent(taken, orders)


def ended(progress: RunProgress, outcomes: str, now: int = NOW) -> RunProgress:
    """Of the first on their way, one for each `+` or `-`, this became."""
    for one, mark in zip(progress.on_their_way, outcomes, strict=False):
        verdict = OrderResult.COMPLETED if mark == "+" else OrderResult.FAILED
        progress = with_result(progress, one.order, verdict, ONE_BY_ONE, now)
    return progress


def after(run: Run, outcomes: str) -> RunProgress:
    """That many sent, and this became of them; it is time to send more."""
    return replace(ended(sent(RunProgress(), run, len(outcomes)), outcomes), next_send_at=NOW)


def test_the_canary_goes_first_and_nothing_else_until_it_is_known() -> None:
    run = a_run(selected=500)
    assert next_move(run, RunProgress(), NOW) == Send(5)
    progress = sent(RunProgress(), run, 5)
    assert next_move(run, progress, NOW + 500) == WaitUntil(NOW + FIRST_LOOK)
    last = NOW + 400 + FIRST_LOOK
    assert next_move(run, progress, NOW + FIRST_LOOK) == CheckOrders(progress.on_their_way[:1])
    assert next_move(run, progress, last) == CheckOrders(progress.on_their_way)
    four = ended(progress, "++++")
    assert not isinstance(next_move(run, four, NOW + 700), Send)
    assert next_move(run, ended(four, "+"), NOW + 700) == Send(PAGE)


def test_a_canary_that_the_scheduler_refuses_is_replaced_by_the_next_orders() -> None:
    run = a_run()
    progress = sent(RunProgress(), run, 5)
    progress = turned_down(progress, "ord-0", "the task is completed", NOW)
    assert next_move(run, progress, NOW) == Send(1)


def test_a_canary_larger_than_the_plan_is_the_plan() -> None:
    run = a_run(selected=3)
    assert next_move(run, RunProgress(), NOW) == Send(3)
    assert next_move(run, after(run, "+++"), NOW) == Finish()


def test_a_canary_larger_than_the_plan_is_judged_by_the_share_of_the_plan() -> None:
    run = a_run(selected=2, canary=5, stop_at=0.2)
    why = "1 of the first 2 failed again, more than 20%"
    assert next_move(run, after(run, "-"), NOW) == Stop(why)


def test_a_canary_larger_than_what_may_be_in_flight_goes_in_parts() -> None:
    run = a_run(selected=500, canary=5, at_once=2)
    assert next_move(run, RunProgress(), NOW) == Send(2)
    assert next_move(run, sent(RunProgress(), run, 2), NOW) == WaitUntil(NOW + FIRST_LOOK)
    assert next_move(run, after(run, "++"), NOW) == Send(2)
    assert next_move(run, after(run, "++++"), NOW) == Send(1)


def test_without_a_canary_it_goes_at_the_rate_at_once() -> None:
    assert next_move(a_run(selected=500, canary=0), RunProgress(), NOW) == Send(PAGE)


@pytest.mark.parametrize(("rate", "page"), [(10, 100), (2.5, 51), (0.5, 11), (0.04, 1)])
def test_no_more_are_sent_than_the_rate_delivers_until_the_next_visit(
    rate: float, page: int
) -> None:
    run = a_run(selected=500, canary=0, rate=rate)
    assert next_move(run, RunProgress(), NOW) == Send(page)
    progress = sent(RunProgress(), run, page)
    gap = round(1000 / rate)
    dues = [one.due for one in progress.on_their_way]
    assert dues == [NOW + round(place * 1000 / rate) for place in range(page)]
    assert progress.next_send_at == NOW + page * gap
    known = ended(progress, "+" * page)
    if page < 100:
        assert next_move(run, known, NOW) == WaitUntil(progress.next_send_at)
        due = progress.next_send_at - AHEAD
        assert next_move(run, known, due) == Send(1)
        assert next_move(run, known, due - 1) == WaitUntil(progress.next_send_at)


def test_a_pause_saves_nothing_up() -> None:
    run = a_run(selected=500, canary=0)
    late = NOW + 60_000
    again = sent(sent(RunProgress(), run, 10), run, 10, late)
    assert again.on_their_way[10].due == late
    assert again.next_send_at == late + 1000


def test_a_command_that_is_sent_again_takes_its_turn() -> None:
    run = a_run(canary=0)
    progress = sent(RunProgress(), run, 10)
    again = to_send_again(
        progress, "ord-0", to_undo=False, tried=True, terms=run.terms, now=NOW + 10
    )
    assert again.on_their_way[0].due == NOW + 1000
    assert again.next_send_at == NOW + 1100


def test_no_more_are_on_their_way_than_is_allowed() -> None:
    run = a_run(selected=50, canary=0, at_once=12)
    progress = sent(RunProgress(), run, 10)
    assert next_move(run, progress, NOW) == Send(2)
    full = sent(progress, run, 2)
    assert next_move(run, full, NOW) == WaitUntil(NOW + FIRST_LOOK)


def test_a_last_order_waits_for_its_turn_and_not_for_the_results_of_the_others() -> None:
    run = a_run(selected=3, canary=0, rate=0.04)
    progress = sent(RunProgress(), run, 2)
    assert next_move(run, progress, NOW) == WaitUntil(NOW + 50_000)
    assert next_move(run, ended(progress, "++"), NOW) == WaitUntil(NOW + 50_000)


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED, RunState.FINISHED])
def test_a_run_that_does_not_run_sends_nothing_and_waits_for_what_was_sent(state: RunState) -> None:
    run = a_run(canary=0, patience=60_000)
    assert next_move(run, RunProgress(), NOW, state) == GiveUp()
    progress = sent(RunProgress(), run, 2)
    assert next_move(run, progress, NOW, state) == WaitUntil(NOW + FIRST_LOOK)
    due = NOW + FIRST_LOOK + 100
    assert next_move(run, progress, due, state) == CheckOrders(progress.on_their_way)
    assert next_move(run, ended(progress, "++"), due, state) == GiveUp()
    silent = progress.news_at + 60_000
    assert next_move(run, progress, silent - 1, state) == CheckOrders(progress.on_their_way)
    assert next_move(run, progress, silent, state) == GiveUp()


def test_orders_are_looked_at_later_and_later() -> None:
    progress, at, pauses = sent(RunProgress(), a_run(), 1), NOW + FIRST_LOOK, []
    for _ in range(6):
        progress = nothing_new(progress, "ord-0", at)
        pauses.append(progress.on_their_way[0].look_at - at)
        at = progress.on_their_way[0].look_at
    assert pauses == [2000, 4000, 8000, 15000, 15000, 15000]
    assert max(pauses) == LONGEST_LOOK


@pytest.mark.parametrize(
    ("outcomes", "stops"),
    [
        ("+++++", False),
        ("++++-", False),  # 20% is not more than 20%
        ("--", True),  # two of five already
        ("-", False),
        ("++-+-", True),
        ("++++-+-", False),  # two of seven are more than 20%, but fewer than LEAST
        ("++++-+--", True),
        ("++++-++++++++--", False),  # 3 of 15
        ("+" * 200 + "-" * 20, False),
        ("+" * 200 + "-" * 21, True),  # of the last hundred, not of all
        ("-" * 1 + "+" * 200, False),
    ],
)
def test_it_stops_where_too_many_failed_again(outcomes: str, stops: bool) -> None:
    run = a_run(selected=500)
    progress = after(run, outcomes)
    assert bool(too_many_failed(run, progress)) is stops
    assert isinstance(next_move(run, progress, NOW), Stop) is stops


def test_one_failure_stops_a_canary_of_one_and_no_other() -> None:
    assert too_many_failed(a_run(canary=1), after(a_run(), "-")) == (
        "1 of the first 1 failed again, more than 20%"
    )
    assert too_many_failed(a_run(canary=0), after(a_run(), "-" * (LEAST - 1))) == ""
    assert too_many_failed(a_run(canary=0), after(a_run(), "-" * LEAST)) == (
        "3 of the last 3 failed again, more than 20%"
    )


def test_a_share_of_all_never_stops_and_of_none_at_the_first_of_the_canary() -> None:
    assert not too_many_failed(a_run(stop_at=1.0), after(a_run(), "-" * 20))
    assert too_many_failed(a_run(stop_at=0.0), after(a_run(), "+-"))
    assert not too_many_failed(a_run(stop_at=0.0), after(a_run(), "+" * 5 + "--"))
    assert too_many_failed(a_run(stop_at=0.0), after(a_run(), "+" * 5 + "---"))


def test_silence_of_the_canary_stops_the_run() -> None:
    run = a_run(patience=60_000)
    progress = nothing_new(sent(RunProgress(), run, 5), "ord-0", NOW)
    for one in progress.on_their_way:
        progress = replace(
            progress,
            on_their_way=tuple(
                replace(each, look_at=NOW + 70_000) for each in progress.on_their_way
            ),
        )
        assert one.sent
    silent = progress.on_their_way[-1].due + 60_000
    assert next_move(run, progress, silent - 1) == WaitUntil(silent)
    assert next_move(run, progress, silent) == Stop(
        "the canary had no result for 60 s: 5 still in flight"
    )


def test_silence_at_the_end_finishes_the_run_and_in_its_midst_stops_it() -> None:
    def silent(progress: RunProgress) -> RunProgress:
        return replace(
            progress,
            on_their_way=tuple(replace(one, look_at=2 * NOW) for one in progress.on_their_way),
        )

    run = a_run(selected=10, canary=0, patience=60_000)
    assert next_move(run, silent(sent(RunProgress(), run, 10)), NOW + 61_000) == Finish()
    run = a_run(selected=11, canary=0, at_once=10, patience=60_000)
    assert next_move(run, silent(sent(RunProgress(), run, 10)), NOW + 61_000) == Stop(
        "the orders in flight had no result for 60 s: 10 still in flight"
    )


def test_what_is_refused_beforehand_costs_no_time() -> None:
    run = a_run(canary=0)
    refused = [(f"ord-{n}", f"version {n}") for n in range(10)]
    progress = taken_up(RunProgress(), [], refused, run.terms, NOW)
    assert next_move(run, progress, NOW) == Send(10)
    assert progress.next_send_at == NOW
    assert progress.refused == (
        OrderGroup("version *", "version 0", 10, ("ord-0", "ord-1", "ord-2")),
    )
    assert (progress.reached, progress.sent, progress.refusals) == (10, 0, 10)


def test_a_run_that_is_resumed_begins_with_a_canary_and_forgets_its_results() -> None:
    run = a_run(selected=100)
    stopped = sent(after(run, "++++-+--"), run, 3)
    assert isinstance(next_move(run, stopped, NOW), Stop)
    again = resumed(stopped, NOW + 5)
    assert again.results == 8
    assert again.recent == ""
    known = ended(again, "+++")
    assert next_move(run, known, NOW + 5) == Send(2)
    late = resumed(stopped, NOW + 60_000)
    assert next_move(run, late, NOW + 60_000) == CheckOrders(late.on_their_way)


def test_what_was_tried_is_counted_and_what_was_only_not_sent_is_not() -> None:
    progress = sent(RunProgress(), a_run(), 1)
    terms = a_run().terms
    again = to_send_again(progress, "ord-0", to_undo=True, tried=True, terms=terms, now=NOW)
    assert again.on_their_way[0].tries == 2
    assert not again.on_their_way[0].sent
    more = to_send_again(again, "ord-0", to_undo=True, tried=False, terms=terms, now=NOW)
    assert more.on_their_way[0].tries == 2


def test_kinds_beyond_the_most_are_counted_as_one() -> None:
    kinds: tuple[OrderGroup, ...] = ()
    for number in range(MOST_KINDS + 10):
        for order in ("a", "b", "c", "d"):
            kinds = with_one(kinds, f"k{number}", f"k{number}", order)
    assert len(kinds) == MOST_KINDS + 1
    assert kinds[-1].key == THE_REST
    assert kinds[-1].orders == 40
    assert all(len(kind.samples) == SAMPLES for kind in kinds)


@dataclass
class Fate:
    """What becomes of the orders of a run, by lot."""

    run: Run
    lot: random.Random
    progress: RunProgress = field(default_factory=RunProgress)
    dues: list[int] = field(default_factory=list)

    def send(self, most: int, now: int) -> None:
        before, canary = self.progress, self.run.terms.canary
        assert 1 <= most <= min(PAGE, self.run.selected - before.reached)
        assert len(before.on_their_way) + most <= self.run.terms.at_once
        if len(before.recent) < canary:
            assert len(before.on_their_way) + len(before.recent) + most <= canary
        orders = [f"ord-{before.reached + place}" for place in range(most)]
        well = [one for one in orders if self.lot.random() < 0.9]
        refused = [(one, "no") for one in orders if one not in well]
        to_send = [InFlightOrder(one) for one in well]
        self.progress = were_sent(taken_up(before, to_send, refused, self.run.terms, now), well)
        self.dues += [one.due for one in self.progress.on_their_way if one.order in well]
        assert all(due <= now + AHEAD for due in self.dues)

    def look(self, order: str, now: int) -> None:
        lot, before = self.lot.random(), self.progress
        if lot < 0.4:
            self.progress = nothing_new(before, order, now)
        elif lot < 0.5:
            self.progress = turned_down(before, order, "no", now)
        else:
            verdict = OrderResult.FAILED if lot < 0.6 else OrderResult.COMPLETED
            self.progress = with_result(before, order, verdict, ONE_BY_ONE, now)

    def to_its_end(self) -> Stop | Finish | GiveUp:
        now = NOW
        for _ in range(5_000):
            match next_move(self.run, self.progress, now):
                case Send(most):
                    self.send(most, now)
                case CheckOrders(orders):
                    for one in orders:
                        self.look(one.order, now)
                case WaitUntil(until):
                    assert until > now
                    now = min(until, now + 10_000)  # the next visit
                case end:
                    return end
        raise AssertionError("it never ends")


@given(
    run=st.builds(
        a_run,
        selected=st.integers(1, 60),
        canary=st.integers(0, 10),
        at_once=st.integers(1, 20),
        rate=st.floats(0.1, 50),
        stop_at=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
        patience=st.sampled_from([3_000, 30_000]),
    ),
    lot=st.randoms(use_true_random=False),
)
def test_whatever_becomes_of_the_orders_the_run_ends_and_keeps_its_terms(
    run: Run, lot: random.Random
) -> None:
    fate = Fate(run, lot)
    end, progress = fate.to_its_end(), fate.progress
    assert isinstance(end, Stop) or progress.reached == run.selected
    known = progress.results + progress.refusals + len(progress.on_their_way)
    assert known == progress.reached
    assert len(progress.recent) <= WINDOW
    gap = 1000 / run.terms.rate
    for before, after_it in pairwise(fate.dues):
        assert after_it - before >= gap - 1, "each has its turn, to the ms"

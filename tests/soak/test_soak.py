"""The soak finds what is planted, repeats itself from a seed, and finds nothing else."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from roundsman import Json, PermanentError, TransientError
from roundsman.engine import agent_holds, effects, transitions
from roundsman.engine.history import RESULT_LEFT_OUT, ROWS_A_VERSION, SIGNAL_UNREAD
from roundsman.model.events import Extend, HistoryRow, OperatorEvent, Resolve, Resubmit
from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import DAY
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord
from roundsman.supervisor.parked import ParkedOrders
from roundsman_testing import Fault, World, sns_notification
from roundsman_testing.faults import CALLS
from roundsman_testing.invariants.rules import Invariant
from roundsman_testing.memory import MemoryPayloads
from roundsman_testing.world.operator import Operator
from tests.support.planted import no_version_condition
from tools import soak_stories
from tools.soak import Limits, main, run_stories, soak
from tools.soak_account import COMMANDS, Account
from tools.soak_stories import Lost, Story

LONG_HOLDS = (3, 6, 8, 16)
"""Stories with holds for hours."""
MUCH_IS_DONE = (7, 8, 10, 16)
"""Stories in which people and outside systems do all that they can: they are looked at first."""


@pytest.mark.exhaustive
def test_some_orders_of_random_stories_break_nothing() -> None:
    found = run_stories(range(100, 112))
    assert found.broken == []
    assert sum(found.account.ends.values()) == found.account.orders > 30
    assert sum(found.account.faults.values()) > 100, "much went wrong on the way"


@pytest.mark.verify
def test_some_hundred_orders_of_random_stories_break_nothing() -> None:
    found = run_stories(range(60))
    assert found.broken == []
    account = found.account
    assert account.orders > 300
    assert sum(account.faults.values()) > 1_000, "much went wrong on the way"
    assert account.faults.keys() == {fault.value for fault in Fault} - {Fault.REFUSED.value}
    assert 0.1 < account.behind / account.stories < 0.35
    assert account.not_covered()["commands"] == ["Reconcile"]
    assert "ends" not in account.not_covered()
    assert sum(account.ends.values()) == account.orders
    assert set(account.ends) == {"Completed", "Undone", "Archived", "Cancelled"}


def test_what_no_story_has_met_is_named_and_what_one_has_met_is_not() -> None:
    account = Account()
    left = account.not_covered()
    assert left["kinds of fault"] == [fault.value for fault in Fault]
    assert left["faults of"] == list(CALLS)
    assert left["ends"] == ["Archived", "Cancelled", "Completed", "Undone"]
    assert {"Resubmit", "Erase"} < set(left["commands"])
    assert "Start" not in left["commands"], "nobody asks for it"
    assert "not begun, claimed" in left["moves of a step"]
    account.faults.update(fault.value for fault in Fault if fault is not Fault.STALE)
    account.hits.update(name for name in CALLS if name not in ("due", "members"))
    account.ends.update(left["ends"])
    account.asked.update(left["commands"])
    account.moves.update(left["moves of a step"][2:])
    assert account.not_covered_sentence() == (
        f"Not covered: kinds of fault: {Fault.STALE}; faults of: due | members; "
        "moves of a step: not begun, claimed | ready, claimed."
    )
    account.faults[Fault.STALE.value] = account.hits["due"] = account.hits["members"] = 1
    account.moves.update(left["moves of a step"])
    assert account.not_covered_sentence() == "Not covered: nothing that is counted."


def test_a_long_list_of_what_no_story_has_met_is_cut() -> None:
    sentence = Account().not_covered_sentence()
    assert f"{' | '.join(CALLS[:8])} and {len(CALLS) - 8} more;" in sentence


@pytest.mark.exhaustive
def test_a_story_counts_the_moves_of_its_steps_and_the_calls_that_were_hit() -> None:
    steps = transitions.STEPS
    found = run_stories([12, 13]).account
    assert found.moves["not begun, claimed"] >= found.ends["Completed"] > 0
    assert sum(found.hits.values()) == sum(found.faults.values())
    assert found.asked.keys() <= set(COMMANDS) | {"Start", "Replied", "Inspect"}
    assert transitions.STEPS is steps, "the table is that of before"


@pytest.mark.exhaustive
def test_a_story_is_the_same_again_from_its_seed() -> None:
    traces = []
    for _ in range(2):
        story = Story(12)
        story.run()
        traces.append(str(story.world.trace))
    assert traces[0] == traces[1]
    assert traces[0].count("\n") > 30


def believes_outcomes(record: StepRecord) -> bool:
    return record.process_state is ProcessState.PROCESSED


def believes_every_outcome(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(effects, "may_have_taken_effect", believes_outcomes)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(2471, id="a failure and the point of no return in one write"),
        pytest.param(3691, id="two attempts in a row that no queue took, the first extended"),
        pytest.param(5939, id="a claim whose message was throttled and hidden for longer"),
        pytest.param(920134, id="an undo at an agent where it was undone, after its key is over"),
        pytest.param(6, id="a signal and the skip of the step that waits for it in one write"),
        pytest.param(151, id="the hold on a workflow runs out, of which a share goes on already"),
        pytest.param(100029, id="a list of which one step was enough is read by nobody"),
        pytest.param(150024, id="a step that is not needed has no further attempt"),
        pytest.param(150252, id="a wait is cancelled beside an undo after which its step goes on"),
        pytest.param(250140, id="a sleep is enough, and the undo of another step waits"),
        pytest.param(300039, id="a move to a plan that needs steps that were skipped"),
        pytest.param(300200, id="a probe that finds nothing while an earlier request may act"),
        pytest.param(300236, id="items that are not needed are undone beside those after them"),
        pytest.param(350000, id="a list that is not needed ends after the next step has begun"),
        pytest.param(950417, id="an item that is not needed has no place in the list"),
        pytest.param(70042, id="what one of enough steps has added is taken back later"),
        pytest.param(2000156, id="two undos of an item that may be tried once have failed"),
        pytest.param(2000385, id="what one of enough steps has added is skipped by an early end"),
        pytest.param(2000412, id="turns wait for a person, beside a hold that has ended"),
        pytest.param(4000333, id="a list of which an added step comes after one item"),
        pytest.param(2302, id="one of enough steps is undone for its next agent"),
        pytest.param(5247, id="one of enough steps succeeds while its task is ending"),
        pytest.param(5398, id="a late answer is decided on the record before it was cleared"),
        pytest.param(259, id="a signal is refused beside a step that is parked"),
    ],
)
def test_a_story_that_a_long_soak_found_is_quiet(seed: int) -> None:
    Story(seed).run()


@pytest.mark.exhaustive
def test_agents_read_and_make_payloads_and_one_that_outlives_its_order_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story(75)
    story.run()
    assert {"open_payload", "put_payload", "erase_payloads"} <= {*story.world.faults.calls}
    monkeypatch.setattr(MemoryPayloads, "erase", lambda *_: None)
    with pytest.raises(Lost, match="payloads of"):
        Story(75).run()


@pytest.mark.parametrize("seed", [104, 107])
def test_an_order_in_an_envelope_is_the_order_that_comes_without(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(soak_stories, "WRAPPING", 1.0)
    assert Story(seed).run().wrapped > 0


@pytest.mark.exhaustive
def test_an_envelope_that_becomes_another_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def another(event: dict[str, Json], *, topic: str) -> str:
        return sns_notification({**event, "total": 20}, topic=topic)

    monkeypatch.setattr(soak_stories, "WRAPPING", 1.0)
    monkeypatch.setattr(soak_stories, "sns_notification", another)
    broken = next(found for seed in range(40) if (found := run_stories([seed]).broken))
    assert "already used" in broken[0][1]


def wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ParkedOrders, "waiting", lambda *_: iter(()))


def checks_no_hold_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(agent_holds, "next_check", lambda context, *_: context.now + 30 * DAY)


@pytest.mark.parametrize(
    ("planted", "seeds"),
    [
        (no_version_condition, range(40)),
        pytest.param(believes_every_outcome, range(40), marks=pytest.mark.exhaustive),
        pytest.param(wakes_nobody, LONG_HOLDS, marks=pytest.mark.exhaustive),
        pytest.param(checks_no_hold_itself, LONG_HOLDS, marks=pytest.mark.exhaustive),
    ],
)
def test_what_lacks_a_guard_is_found(
    monkeypatch: pytest.MonkeyPatch,
    planted: Callable[[pytest.MonkeyPatch], None],
    seeds: Sequence[int],
) -> None:
    planted(monkeypatch)
    broken = next((found for seed in seeds if (found := run_stories([seed]).broken)), None)
    assert broken is not None
    seed, why = broken[0]
    assert f"seed={seed} repeats " in why
    assert any(invariant.name in why for invariant in Invariant)


@pytest.mark.exhaustive
def test_it_stops_at_a_limit_and_runs_each_seed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.soak.IN_ONE_GO", 2)
    *_, total = soak(11, Limits(stories=3), workers=2)
    assert total.account.stories == 3
    assert total.account.orders == run_stories(range(11, 14)).account.orders


@pytest.mark.exhaustive
def test_the_command_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stories", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "0 violations" in printed
    assert "\nNot covered: " in printed
    assert main(["--stories", "1", "--workers", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["stories"], document["broken"]) == (1, [])
    assert "Reconcile" in document["not_covered"]["commands"]


@pytest.mark.exhaustive
def test_the_report_has_each_count_as_one_number_and_what_was_not_covered(tmp_path: Path) -> None:
    report = tmp_path / "soak.json"
    assert main(["--stories", "1", "--workers", "1", "--report", str(report)]) == 0
    counts = json.loads(report.read_text())
    assert (counts["stories"], counts["violations"]) == (1, 0)
    assert counts["orders"] > 0
    assert counts["faults"] > 0
    assert counts["not covered"].startswith("Not covered: ")


@pytest.mark.verify
def test_stories_have_long_holds_of_each_kind_and_lost_wakes() -> None:
    """Holds of hours on an agent, a circuit, a workflow and everything, some of them in shares."""
    wanted = {"*", "soak", OPERATOR, BREAKER, "released 30 %", "released 100 %"}
    wanted |= {"some wakes are lost", "all wakes are lost"}
    account = Account()
    for story in map(Story, range(100)):
        if story.parking is not None:
            account.add(story.run())
            if wanted <= account.long_holds.keys() and account.parked > 10:
                return
    raise AssertionError(f"{account.parked} parked orders in stories with {account.long_holds}")


@pytest.mark.verify
def test_stories_have_signals_and_parts_that_are_accepted_or_refused() -> None:
    wanted = {"signal", "refused signal", "no signal", "undo-part", "refused undo-part"}
    seen: set[str] = set()
    for story in map(Story, range(60)):
        if story.signalling is not None or story.taking_back is not None:
            story.run()
            rows = [row for order_id in story.sent for row in story.world.history(order_id)]
            seen |= {row.kind for row in rows if row.kind != "refused"}
            seen |= {f"refused {row.reason.split()[0]}" for row in rows if row.kind == "refused"}
            seen |= {"no signal" for row in rows if "no signal " in row.reason}
        if wanted <= seen:
            return
    raise AssertionError(f"no story has {wanted - seen}")


@pytest.mark.verify
def test_stories_have_signals_that_come_early_and_signals_that_nobody_reads() -> None:
    wanted = {"before its order", "kept", "read when its step begins", "lost by a move"}
    wanted |= {f"the task is {end}" for end in ("Completed", "Undone", "Cancelled")}
    wanted |= {"no step is left that waits for it"}
    seen: set[str] = set()
    stories = (story for story in map(Story, range(300)) if story.signalling is not None)
    for story in sorted(stories, key=lambda story: story.dropping is None):
        story.run()
        said = {what for line in story.world.trace.lines() for what in _of_a_signal(line)}
        seen |= said - ({"before its order"} if story.cancelled else set())
        for order_id in story.sent:
            rows = list(story.world.history(order_id))
            unread = [row for row in rows if row.kind == SIGNAL_UNREAD]
            seen |= {row.reason.rpartition(": ")[2] for row in unread}
            moves = {row.seq // ROWS_A_VERSION for row in rows if row.kind == "move"}
            seen |= {"lost by a move" for row in unread if row.seq // ROWS_A_VERSION in moves}
        if wanted <= seen:
            return
    raise AssertionError(f"no story has {wanted - seen}")


def _of_a_signal(line: str) -> Iterator[str]:
    """What a line of the trace says of a signal that came before something waited for it."""
    if "the order has no task, and may be on its way" in line:
        yield "before its order"
    if "is kept for its step" in line:
        yield "kept"
    if "its signal has come" in line and "signal by application" not in line:
        yield "read when its step begins"


@pytest.mark.verify
def test_stories_have_results_that_are_left_out_and_that_people_give() -> None:
    wanted = {
        *("nobody reads it", "what comes after it waits", "the steps that it adds are missing"),
        *("too long", "no JSON", "kept", "not kept", "too long to be given"),
        "resubmitted too early",
    }
    seen: set[str] = set()
    for story in map(Story, range(200)):
        if story.lengthy is None:
            continue
        story.run()
        for order_id in story.sent:
            seen |= {what for row in story.world.history(order_id) for what in _of_a_result(row)}
            kept = [one.left_out for one in story.world.task(order_id).steps.values()]
            seen |= {"not kept" if one.row is None else "kept" for one in kept if one is not None}
        if wanted <= seen:
            return
    raise AssertionError(f"no story has {wanted - seen}")


def _of_a_result(row: HistoryRow) -> Iterator[str]:
    """What a row of the history says of a result that was left out."""
    said = row.reason
    if row.kind == RESULT_LEFT_OUT:
        yield from (part.strip() for part in said.split(";")[1:])
        yield "no JSON" if "ResultNotJson" in said else "too long" if " bytes;" in said else ""
    if row.kind == "refused" and "the result has" in said:
        yield "too long to be given"
    if row.kind == "refused" and "was left out" in said:
        yield "resubmitted too early"


@pytest.mark.verify
def test_stories_have_all_that_people_and_outside_systems_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is not in the stories is not shown by them."""
    seen: set[str] = set()
    ask, answer = Operator.ask, World.answer

    def asked(self: Operator, order_id: str, event: OperatorEvent) -> None:
        match event:
            case Resubmit(fresh_key=True):
                seen.add("a fresh key")
            case Resolve(did=did):
                seen.add("it did" if did else "it did not")
            case Extend(step=str()):
                seen.add("more time for a step")
            case _:
                pass
        ask(self, order_id, event)

    def answered(
        self: World,
        order_id: str,
        step: str,
        result: Json = None,
        *,
        error: PermanentError | TransientError | None = None,
        asked: int | None = None,
    ) -> None:
        times = len(self.processes.tokens[order_id, step])
        seen.add(
            f"a {'yes' if error is None else 'no'} to the {'last' if asked == times else 'first'}"
        )
        answer(self, order_id, step, result, error=error, asked=asked)

    monkeypatch.setattr(Operator, "ask", asked)
    monkeypatch.setattr(World, "answer", answered)
    wanted = {
        *("a fresh key", "it did", "it did not", "more time for a step"),
        *("a yes to the last", "a yes to the first", "a no to the last", "a no to the first"),
    }
    for seed in (*MUCH_IS_DONE, *range(100)):
        if seen != wanted:
            Story(seed).run()
    assert seen == wanted
    stories = [Story(seed) for seed in range(60)]
    assert {story.world.instances for story in stories} == {None, 1, 3}
    assert {story.world.functions.timed for story in stories} == {False, True}
    assert len({story.world.processes.tables.index_lag for story in stories}) == 3
    several = [
        s
        for s in stories
        if any(len(x.agents) > 1 for w in s.world.workflows.values() for x in w.steps)
    ]
    assert {story.world.mishaps.repeats for story in several} == {0.0, 0.05, 0.2}

"""What was done to a stack between two instants."""

from dataclasses import replace

from roundsman.model.bulk_run import ListedRun, Run, Terms
from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.holds import BREAKER, ENDED, EVERY_WORKFLOW, OPERATOR, Hold, unreadable_hold
from roundsman.model.instants import MINUTE
from roundsman_console.aws.versions import Published
from roundsman_console.facts.course.marks import (
    ONE_DEPLOYMENT,
    EventMark,
    deployment_marks,
    hold_marks,
    run_marks,
    within,
)

AT = 1_800_000_000_000
HOLD = Hold("payment", OPERATOR, AT, AT + 30 * MINUTE, "declines all", "amy")


def said(marks: list[EventMark]) -> list[tuple[int, str, str, str | None]]:
    return [((one.at - AT) // MINUTE, one.kind.value, one.words, one.by) for one in marks]


def test_versions_that_are_published_together_are_one_deployment_with_the_newest_of_each() -> None:
    versions = [
        Published("Scheduler", 7, AT + ONE_DEPLOYMENT),
        Published("Payment", 41, AT + MINUTE),
        Published("Payment", 40, AT),
        Published("Mail", 3, AT + 2 * ONE_DEPLOYMENT + 1),
    ]
    assert said([*deployment_marks(versions)]) == [
        (0, "deployment", "published Payment version 41, Scheduler version 7", None),
        (10, "deployment", "published Mail version 3", None),
    ]
    assert [*deployment_marks([])] == []


def test_a_hold_has_who_held_and_why_and_when_it_ended_by_itself() -> None:
    began = (0, "hold", "held payment for 30 min: declines all", "amy")
    assert said([*hold_marks([HOLD], AT + 29 * MINUTE)]) == [began]
    assert said([*hold_marks([HOLD], HOLD.until)]) == [
        began,
        (30, "release", "the hold of payment ended by itself", None),
    ]
    circuit = replace(HOLD, kind=BREAKER, by="payment", reason="5 failures")
    assert said([*hold_marks([circuit], AT)]) == [
        (0, "circuit", "the circuit of payment opened: 5 failures", None)
    ]


def test_a_release_of_an_agent_has_its_time_and_that_of_orders_has_none() -> None:
    """The row of an agent's hold keeps when it was released, that of orders when it began."""
    of_agent = Hold("payment", OPERATOR, AT, ENDED, "it was released", "")
    [(_, kind, words, by)] = said([*hold_marks([of_agent], AT)])
    assert (kind, by) == ("release", None)
    assert words == "released payment; the hold, by whom and why are not kept"
    of_orders = Hold("", OPERATOR, AT, ENDED, "stop", "amy", workflow=EVERY_WORKFLOW)
    assert said([*hold_marks([of_orders], AT)]) == [
        (
            0,
            "hold",
            "held everything: stop; it was released since; when, by whom and why are not kept",
            "amy",
        )
    ]


def test_a_hold_that_cannot_be_read_is_no_mark_since_its_time_is_not_known() -> None:
    assert [*hold_marks([unreadable_hold("payment", OPERATOR, "Since is missing", AT)], AT)] == []


def test_a_bulk_run_has_its_command_and_one_that_is_only_listed_its_starter() -> None:
    source = CommandSource("b-1", "amy", "card is good")
    run = Run("b-1", Resubmit(source), "amy", "AROA:amy.s", "card is good", "", AT, 60, Terms())
    listed = ListedRun("b-2", "AROA:ben", AT + MINUTE)
    root = ListedRun("b-3", "AIDA", AT + MINUTE)
    assert said([*run_marks([run, listed, root])]) == [
        (0, "bulk run", "resubmit of 60 orders: card is good", "amy"),
        (1, "bulk run", "began", "ben"),
        (1, "bulk run", "began", "AIDA"),
    ]


def test_marks_within_a_time_are_in_order_and_its_end_does_not_belong_to_it() -> None:
    runs = [ListedRun(f"b-{n}", "x", AT + n * MINUTE) for n in (3, 0, 1, 2)]
    found = within(run_marks(runs), AT + MINUTE, AT + 3 * MINUTE)
    assert [one.about for one in found] == ["b-1", "b-2"]

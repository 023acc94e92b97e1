"""The demo's orders are the files in events/, and mean what the scenario says of them."""

import json
import re
from itertools import pairwise

import pytest

from roundsman.errors import InvalidMessage
from roundsman.submission.events import Asked, EventReader
from roundsman.submission.submission import CancelAsked, ValidOrder
from roundsman_testing.remote_services.fault_rules import read_rules
from tests.console.demo_samples import EVENTS, SENT, sent_of
from tools.demo.scenario import CASES, DemoOrder, fault_rules
from workflows.registry import WORKFLOWS


def read(event: str) -> Asked:
    return EventReader(WORKFLOWS).read(sent_of(event).body, 1_700_000_000_000, lambda _: None)


def order(event: str) -> ValidOrder:
    found = read(event)
    assert isinstance(found, ValidOrder)
    return found


def test_every_event_file_is_sent_once() -> None:
    assert sorted(case.event for case in CASES) == sorted(p.name for p in EVENTS.glob("*.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.event)
def test_each_file_holds_the_order_that_its_case_names(case: DemoOrder) -> None:
    assert json.loads(sent_of(case.event).body)["orderId"] == case.order_id


@pytest.mark.parametrize("case", [c for c in CASES if c.makes_a_task], ids=lambda case: case.event)
def test_the_orders_that_make_a_task_are_valid(case: DemoOrder) -> None:
    assert order(case.event).plan.workflow == "order_fulfilment"


def test_the_cancellation_takes_back_an_order_that_still_waits() -> None:
    cancel = read("cancel.json")
    assert isinstance(cancel, CancelAsked)
    later = order("later.json")
    assert cancel.order_id == later.order_id
    # Long enough to be cancelled in, and shorter than what the demo takes anyway: the Start that
    # was sent for it waits in the SchedulerQueue until then.
    assert later.options.start_at == 1_700_000_000_000 + 45_000


def test_the_malformed_event_has_the_problems_that_the_demo_expects() -> None:
    with pytest.raises(InvalidMessage) as refusal:
        order("malformed.json")
    expected = next(case for case in CASES if case.event == "malformed.json").problems
    assert sorted(p.path for p in refusal.value.problems) == sorted(expected)


def test_the_duplicate_is_the_same_order_in_other_bytes_and_the_conflict_another() -> None:
    good, duplicate, conflict = map(order, ("good.json", "duplicate.json", "conflicting.json"))
    assert sent_of("duplicate.json").body != sent_of("good.json").body
    assert duplicate.content_hash == good.content_hash
    assert conflict.order_id == good.order_id
    assert conflict.content_hash != good.content_hash


def test_no_two_messages_have_the_same_text() -> None:
    # A rejection is matched to its message by its text.
    assert len({one.body for one in SENT}) == len(SENT)


def test_the_faults_are_those_that_the_events_readme_shows() -> None:
    text = (EVENTS / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert json.loads(block.group(1)) == {"rules": fault_rules(CASES)}


def test_the_remote_services_take_the_faults() -> None:
    assert len(read_rules({"rules": fault_rules(CASES)})) == 5


def test_what_repeats_or_cancels_an_order_is_sent_after_it() -> None:
    assert all(later.follows or not case.follows for case, later in pairwise(CASES))
    assert {case.order_id for case in CASES if case.follows} <= {
        case.order_id for case in CASES if case.makes_a_task
    }

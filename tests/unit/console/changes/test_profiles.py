"""A change of the profile of a live stack loses nothing, by what `roundsman changes` says of it."""

from functools import cache
from itertools import permutations
from typing import Any

import pytest

from roundsman_console.facts.cost.model import PROFILES
from roundsman_dev.changes.compare import Action, Changes, compare
from roundsman_dev.nested_stacks import Document
from tests.unit.console.changes.templates import packaged, resources

WITHOUT_DATA = {
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::Logs::MetricFilter",
    "AWS::Lambda::EventSourceMapping",
    "AWS::KMS::Key",
}
"""The types of what a change of the profile may remove. A mapping reads a queue, which stays; what
alarms and filters have counted stays in CloudWatch; and nothing is stored under the key."""
ONLY_IN_LEAN = {"AWS::Lambda::EventSourceMapping", "AWS::KMS::Key", "AWS::Logs::MetricFilter"}
"""Those that go with the profile `lean` alone."""


@cache
def of(profile: str) -> dict[str, Document]:
    def choose(root: dict[str, Any]) -> None:
        root["Resources"]["Engine"]["Properties"]["Parameters"]["Profile"] = profile

    return resources(packaged({"": choose}))


def change(before: str, after: str) -> Changes:
    return compare(of(before), of(after))


@pytest.mark.parametrize(("before", "after"), list(permutations(PROFILES, 2)))
def test_no_table_queue_key_or_function_is_replaced_or_removed_with_what_it_has(
    before: str, after: str
) -> None:
    found = change(before, after)
    assert found.own, "nothing would be told apart"
    assert found.stopped() == []
    for one in (*found.own, *found.passed_on):
        assert one.action not in {Action.REPLACE, Action.MAY_REPLACE, Action.LEAVE}, one
        if one.action is Action.REMOVE:
            assert one.kind in WITHOUT_DATA, one
            assert after == "lean" or one.kind not in ONLY_IN_LEAN, one


def test_nothing_is_stored_under_the_key_of_alerts_which_lean_has_not() -> None:
    """A topic passes alerts on and keeps none; the others who name the key may use it for that."""
    assert "AlertKey" in {one.name for one in change("full", "lean").own}
    naming = {
        str(body["Type"])
        for name, body in of("full").items()
        if name != "AlertKey" and "AlertKey" in str(body)
    }
    assert naming == {"AWS::SNS::Topic", "AWS::IAM::Role", "AWS::IAM::ManagedPolicy"}


def test_the_queues_of_urgent_requests_stay_without_their_mappings() -> None:
    gone = {one.name for one in change("full", "lean").own if one.action is Action.REMOVE}
    urgent = {name for name in of("full") if name.endswith("FunctionUrgentRequests")}
    assert urgent
    assert urgent <= gone
    assert not {name for name in gone if name.endswith("Queue")}

"""Unreadable attributes are reported once, and an instance remembers only so many of them."""

import pytest

from roundsman.aws.dynamodb.item_reader import ReportOnce
from roundsman.errors import UnreadableRecord


def problem(name: str) -> UnreadableRecord:
    return UnreadableRecord("marks", name, "is missing")


def test_a_problem_is_reported_once() -> None:
    reported: list[UnreadableRecord] = []
    report = ReportOnce(reported.append)
    for name in ("a", "b", "a", "b"):
        report(problem(name))
    assert [one.field for one in reported] == ["a", "b"]


def test_more_problems_than_an_instance_remembers_are_reported_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roundsman.aws.dynamodb.item_reader.MOST_REPORTED", 2)
    reported: list[UnreadableRecord] = []
    report = ReportOnce(reported.append)
    for name in ("a", "b", "c", "c", "a"):
        report(problem(name))
    assert [one.field for one in reported] == ["a", "b", "c", "a"]

"""Calls of Python functions are counted by what they are for, and only in functions."""

from collections import Counter
from collections.abc import Callable
from typing import cast

import moto.core.utils
import pytest
from botocore.utils import percent_encode

from benchmarks.harness.calls import BOTOCORE, GROUPS, JSON, REST, calls_counted
from roundsman.model.json import parse_json
from roundsman.wire.limits import wire_text
from roundsman_testing.stack import Stack


class Functions:
    """In place of a stack: each function does one thing."""

    def __init__(self, does: Callable[[], object]) -> None:
        self.does = does

    def invoke(self, _function: str, _event: dict[str, object], _context: object = None) -> object:
        return self.does()


def calls_of(does: Callable[[], object]) -> dict[str, int]:
    stack = cast("Stack", Functions(does))
    with calls_counted(stack) as found:
        stack.invoke("SchedulerFunction", {})
    assert [*found] == [*GROUPS]
    return {name: calls for name, calls in found.items() if calls}


@pytest.mark.parametrize(
    ("does", "group"),
    [
        (lambda: parse_json("[1]"), JSON),
        (lambda: wire_text("a"), REST),
        (lambda: percent_encode("a b"), BOTOCORE),
    ],
)
def test_a_call_and_what_the_standard_library_does_for_it_are_of_one_group(
    does: Callable[[], object], group: str
) -> None:
    assert [*calls_of(does)] == [group]


def test_what_stands_in_for_aws_is_not_counted_and_neither_is_what_it_calls() -> None:
    assert not calls_of(moto.core.utils.utcnow)


def test_what_is_done_outside_of_functions_is_not_counted() -> None:
    stack = cast("Stack", Functions(lambda: None))
    with calls_counted(stack) as found:
        parse_json("[1]")
    assert found == Counter()


def test_the_same_is_counted_each_time() -> None:
    body = '{"a": [1, {"b": null}]}'
    assert calls_of(lambda: parse_json(body)) == calls_of(lambda: parse_json(body)) == {JSON: 5}

"""The definitions agree with the template: `roundsman check`."""

from collections.abc import Callable


def test_the_definitions_agree_with_the_template(roundsman_check: Callable[[], list[str]]) -> None:
    assert roundsman_check() == []

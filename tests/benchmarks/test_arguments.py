"""`make bench`: which parts are run for what is asked."""

import pytest

from benchmarks.__main__ import PARTS, wanted


def test_all_parts_are_run_where_none_is_named() -> None:
    assert wanted([]).parts == list(PARTS)


def test_only_those_that_are_named_are_run() -> None:
    assert wanted(["money", "units"]).parts == ["money", "units"]
    assert wanted(["record", "--counts-only"]).parts == ["record"]


@pytest.mark.parametrize("asked", [["nothing"], ["record", "units"]])
def test_what_there_is_not_is_refused_in_a_sentence(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        wanted(asked)
    output = capsys.readouterr().err
    assert "there is no part nothing" in output or "record goes alone" in output

"""What people type for durations and results."""

import getpass
from pathlib import Path

import pytest

from roundsman_console.acts.actor import read_name
from roundsman_console.base.errors import USAGE, ConsoleError, InvalidArgument
from roundsman_console.base.typed_inputs import read_duration, read_result
from roundsman_console.faces.cli.errors import exit_code


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5_400), ("2d", 172_800), ("1d2h3m4s", 93_784)],
)
def test_a_duration_is_read_with_its_units(text: str, seconds: int) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "1.5h", "30m1h", "-1s", "10 m", "٣m", "1e3s"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"Write it with units: 90s, 10m, 1h30m or 2d\."
    ) as refused:
        read_duration(text)
    assert exit_code(refused.value) == USAGE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9s", "9s is too short: at least 10s, at most 7d at once."),
        ("0s", "0s is too short"),
        ("7d1s", "7d1s is too long: at least 10s, at most 7d at once."),
    ],
)
def test_a_duration_beyond_its_bounds_is_refused_with_both(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as refused:
        read_duration(text, least=10, most=7 * 86_400)
    assert exit_code(refused.value) == USAGE


def test_a_duration_may_be_as_short_and_as_long_as_its_bounds() -> None:
    assert read_duration("10s", least=10, most=600) == 10
    assert read_duration("10m", least=10, most=600) == 600


def test_a_result_is_any_json() -> None:
    assert read_result('{"a": [1.5, null]}') == {"a": [1.5, None]}
    assert read_result(None) is None


def test_a_result_in_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('["é"]', encoding="utf-8")
    assert read_result(f"@{path}") == ["é"]


def test_a_result_that_is_bare_text_is_refused_with_the_way_to_quote_it() -> None:
    with pytest.raises(InvalidArgument, match="A text value needs JSON quotes"):
        read_result("ch_1")


def test_a_result_in_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="is not UTF-8 text"):
        read_result(f"@{path}")
    path.write_text("[1, 1")
    with pytest.raises(InvalidArgument, match=r"result\.json is not JSON"):
        read_result(f"@{path}")


def test_a_user_without_a_name_must_say_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise OSError("no entry for this user")

    monkeypatch.setattr(getpass, "getuser", nameless)
    with pytest.raises(ConsoleError, match="Give a name with --as"):
        read_name(None)

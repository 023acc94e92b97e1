"""The time of a library counts for the code that called it, and what is not ours is left out."""

import cProfile
import json

import pytest

from benchmarks.speed.profiling import (
    CALLS,
    NOT_OURS,
    OTHER,
    OWN_TIME,
    Timings,
    report,
    subject_of,
    subjects_of,
)

ENGINE = ("/x/roundsman/engine/decision.py", 1, "decide")
CODEC = ("/x/roundsman/aws/dynamodb/codec.py", 1, "task_item")
MOTO = ("/x/moto/sqs/models.py", 1, "send")
JSON = ("/usr/lib/python3.11/json/__init__.py", 1, "dumps")
BUILTIN = ("~", 0, "<built-in method isinstance>")


def test_time_of_libraries_is_passed_on_to_their_callers_in_proportion() -> None:
    timings: Timings = {
        ENGINE: (1, 1, 1.0, 9.0, {}),
        CODEC: (1, 1, 2.0, 9.0, {}),
        MOTO: (1, 1, 4.0, 9.0, {}),
        JSON: (3, 3, 4.0, 8.0, {ENGINE: (1, 1, 1.0, 2.0), MOTO: (2, 2, 3.0, 6.0)}),
        BUILTIN: (9, 9, 8.0, 8.0, {JSON: (8, 8, 4.0, 4.0), CODEC: (1, 1, 4.0, 4.0)}),
    }
    assert subjects_of(timings, OWN_TIME) == pytest.approx(
        {
            "our engine": 1 + 1 + 1,
            "records: our codec": 2 + 4,
            NOT_OURS: 4 + 3 + 3,
            OTHER: 0,
        }
    )
    assert subjects_of(timings, CALLS) == pytest.approx(
        {
            "our engine": 1 + (3 + 8) / 3,
            "records: our codec": 1 + 1,
            NOT_OURS: 1 + (3 + 8) * 2 / 3,
            OTHER: 0,
        }
    )


def test_libraries_that_call_each_other_lose_no_time() -> None:
    other = ("/usr/lib/python3.11/re/__init__.py", 1, "sub")
    timings: Timings = {
        JSON: (1, 1, 3.0, 3.0, {other: (1, 1, 3.0, 3.0)}),
        other: (1, 1, 1.0, 1.0, {JSON: (1, 1, 1.0, 1.0)}),
    }
    assert sum(subjects_of(timings, OWN_TIME).values()) == pytest.approx(4)


def test_every_subject_is_found_by_its_path() -> None:
    assert subject_of(ENGINE) == "our engine"
    assert subject_of(("/v/botocore/parsers.py", 1, "parse")) == "botocore: parsing"
    assert subject_of(("/v/urllib3/connection.py", 1, "request")) == "HTTP"
    assert subject_of(("/x/roundsman/testing/stack/driver.py", 1, "invoke")) == NOT_OURS
    assert subject_of(JSON) is None


def test_a_profile_of_this_process_is_read() -> None:
    profiler = cProfile.Profile()
    with profiler:
        json.dumps(list(range(1000)))
    profiler.create_stats()
    assert sum(subjects_of(profiler.stats, OWN_TIME).values()) > 0


def test_shares_add_up_without_what_is_not_ours() -> None:
    found = report(
        {"submission": {"HTTP": 1.0}, "scheduler": {"HTTP": 2.0, "our engine": 1.0, NOT_OURS: 9.0}},
        {"scheduler": 7},
        {"submission": 1, "scheduler": 4},
        {"submission": 500, "scheduler": 1_500},
        {"submission": 300, "scheduler": 700},
    )
    assert found.document["profile"] == {
        "share": {"HTTP": 0.75, "our engine": 0.25},
        "by_function": {"submission": 0.25, "scheduler": 0.75},
        "dynamodb_calls": {"scheduler": 7},
        "sqs_calls": {"submission": 1, "scheduler": 4},
        "function_calls": 2_000,
        "function_calls_of_ten": 1_000,
    }
    assert "75.0" in found.text()

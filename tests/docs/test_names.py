"""The pages name nothing that the sources no longer have: no constant, parameter or function."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.aws.dynamodb import codec, schedules
from tests.docs.test_reference import tables_of

ROOT = Path(__file__).parents[2]
RECORDS = ("docs/decisions/", "CHANGELOG.md")
"""They say what was, under the names of their time."""
MADE = "docs/reference/cli.md"
"""It is made from the commands themselves."""
OF_OTHERS = {
    "AWS": {
        "AgentUrgentConcurrency",  # the same parameter of any agent
        "CancelMessageMoveTask",
        "CreationDateTime",
        "DELETE_FAILED",
        "INSUFFICIENT_DATA",
        "ListBackups",
        "ListMessageMoveTasks",
        "NumberOfNotificationsFailed",
        "RootId",
    },
    "Celery": {"acks_late"},
    "the reader's own project": {
        "LoyaltyUrl",
        "PaymentConcurrency",
        "SCHEDULED_TIME",
        "SUBMISSION_QUEUE_URL",
        "SendsWeeklyPaper",
        "chrage_card",
        "order_fulfilment_2",
    },
    "a family of metrics": {"StepAttemptsPolling", "StepAttemptsWaiting"},
    "a printed message": {"IDEMPOTENCY", "OFTEN"},
}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
A_NAME = re.compile(
    r"[A-Z]{4,}|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+|(?=.*[a-zA-Z])\w*[a-zA-Z0-9]_\w*"
)
"""A constant, a class or parameter, or a name of several words."""


def names_on(page: str) -> Iterator[tuple[str, int]]:
    """Yield each name in the code spans of a page, with its line."""
    for number, line in enumerate(page.splitlines(), 1):
        for span in re.findall(r"`([^`\n]+)`", line):
            for name in WORD.findall(span):
                if A_NAME.fullmatch(name):
                    yield name, number


@pytest.fixture(scope="module")
def known() -> frozenset[str]:
    """Every word of the sources, of the names of their files, and of the attributes of records."""
    words = set[str]().union(*OF_OTHERS.values())
    for module in (codec, schedules):
        words.update(field.name for table in tables_of(module) for field in table.fields)
    for path in files():
        words.update(WORD.findall(path.stem))
        if path.suffix != ".md" and path != Path(__file__):
            words.update(WORD.findall(path.read_text(encoding="utf-8", errors="ignore")))
    return frozenset(words)


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def pages() -> list[str]:
    names = [path.relative_to(ROOT).as_posix() for path in files() if path.suffix == ".md"]
    return [one for one in names if not one.startswith(RECORDS) and one != MADE]


def test_the_pages_name_what_there_is(known: frozenset[str]) -> None:
    found = {page: names_on((ROOT / page).read_text(encoding="utf-8")) for page in pages()}
    assert len(found) > 50
    assert not [
        f"{page}:{line}: {name}"
        for page, names in found.items()
        for name, line in names
        if name not in known
    ]


def test_a_name_that_is_gone_is_found(known: frozenset[str]) -> None:
    text = "See `MOVED_AWAY`, `LostParameter`, `lost_function(x)` and `ROOT`."
    assert [name for name, _ in names_on(text) if name not in known] == [
        "MOVED_AWAY",
        "LostParameter",
        "lost_function",
    ]

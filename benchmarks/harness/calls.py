"""Counts the calls of Python functions in the functions of a stack, by what they are for.

Unlike a time, such a count hardly depends on the machine. Each call counts, and so does each time a
generator goes on. What the standard library does belongs to the one that called it, except JSON.
Not counted is what stands in for AWS and what runs the functions.
"""

import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from unittest.mock import patch

from roundsman_testing.stack import Context, Stack

LIBRARY = sysconfig.get_path("stdlib")
PACKAGES = sysconfig.get_path("purelib")

BOTOCORE, POWERTOOLS, LOGGING = "botocore and urllib3", "Powertools", "logs and metrics"
JSON, CODEC, DECISION = "JSON", "records to and from items", "decisions"
REST = "the rest of Roundsman and the example"
GROUPS = (BOTOCORE, POWERTOOLS, LOGGING, JSON, CODEC, DECISION, REST)

OTHERS = "what runs the functions"
STAND_IN = "what stands in for AWS"
"""All that is called from here is not counted either."""

PLACES = (
    (f"{PACKAGES}/moto/", STAND_IN),
    (f"{PACKAGES}/aws_lambda_powertools/", POWERTOOLS),
    (f"{PACKAGES}/jmespath/", None),
    (PACKAGES, BOTOCORE),
    (f"{LIBRARY}/unittest/", OTHERS),
    (f"{LIBRARY}/json/", JSON),
    (LIBRARY, None),
    ("<", None),  # frozen modules of the standard library, and methods that dataclasses generate
    ("/roundsman/engine/", DECISION),
    ("/roundsman/model/json.py", JSON),
    ("/roundsman/model/field_table.py", CODEC),
    ("/roundsman/aws/dynamodb/", CODEC),
    ("/roundsman/aws/observability.py", LOGGING),
    ("/layers/", REST),
    ("/functions/", REST),
)
"""Parts of the paths of files, and whose calls they have; None for the caller's. The first counts.
Any other file belongs to what runs the functions."""


class _Counting:
    """A profile function of one thread; `found` has the calls by group."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self._under_way = [OTHERS]
        self._known: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            group = self._group_of(frame.f_code.co_filename)
            self._under_way.append(group)
            self.found[group] += 1
        elif event == "return" and len(self._under_way) > 1:
            self._under_way.pop()

    def _group_of(self, file: str) -> str:
        caller = self._under_way[-1]
        if caller == STAND_IN:
            return caller
        if file not in self._known:
            self._known[file] = next((each for part, each in PLACES if part in file), OTHERS)
        return self._known[file] or caller


@contextmanager
def calls_counted(stack: Stack) -> Iterator[Counter[str]]:
    """Count the calls of Python functions in all functions of the stack, by group of GROUPS."""
    counting, invoke = _Counting(), stack.invoke

    def invoked(function: str, event: dict[str, object], context: Context | None = None) -> object:
        before = sys.getprofile()
        sys.setprofile(counting)
        try:
            return invoke(function, event, context)
        finally:
            sys.setprofile(before)

    found: Counter[str] = Counter()
    with patch.object(stack, "invoke", invoked):
        yield found
    found.update({group: counting.found[group] for group in GROUPS})

"""`make check` lets a process die at every call of a story, `make verify` each call fail, too."""

from collections.abc import Collection

import pytest

from roundsman_testing import Fault
from roundsman_testing.world.crashes import PASSING

DEATHS = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})

at_every_call = pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(DEATHS, id="a process dies", marks=pytest.mark.exhaustive),
        pytest.param(PASSING - DEATHS, id="a call fails", marks=pytest.mark.verify),
    ],
)
"""Two cases of one test, which together try each fault of `PASSING`."""

Kinds = Collection[Fault]

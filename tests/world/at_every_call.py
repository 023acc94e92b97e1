"""A story in which a process dies, or a call fails, at every call: for `make verify`."""

from collections.abc import Collection

import pytest

from roundsman_testing import Fault
from roundsman_testing.world.crashes import PASSING

DEATHS = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})

at_every_call = pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(DEATHS, id="a process dies", marks=pytest.mark.verify),
        pytest.param(PASSING - DEATHS, id="a call fails", marks=pytest.mark.verify),
    ],
)
"""Two cases of one test, which together try each fault of `PASSING`."""

Kinds = Collection[Fault]

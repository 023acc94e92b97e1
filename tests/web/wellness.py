"""A stack with which nothing is wrong: on moto nobody is subscribed, and no queue is read."""

import pytest

from roundsman_console.faces.web.readings.background_checks import BackgroundChecks
from roundsman_console.faces.web.readings.unreadable_parts import Part
from roundsman_console.facts.finding.report import Looked, Report
from roundsman_testing.stack import Stack


def make_well(world: Stack, patch: pytest.MonkeyPatch) -> None:
    """The supervisor passes, and the overview is told that the doctor finds nothing."""
    world.supervise()
    doctor_finds_nothing(world, patch)


def doctor_finds_nothing(world: Stack, patch: pytest.MonkeyPatch) -> None:
    """The overview is told that the doctor finds nothing."""

    def checked(*_: object) -> Part[Report]:
        looked = Looked("roundsman", world.clock(), {"open": 0, "archived": 0}, ())
        return Part(Report(looked, (), ()))

    patch.setattr(BackgroundChecks, "report", checked)

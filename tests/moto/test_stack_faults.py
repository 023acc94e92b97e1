"""Each fault of the table on docs/explanation/profiles.md is noticed as the table says."""

import os
import re
from collections.abc import Sequence

import pytest

from roundsman_testing.stack import Clock, Services
from tests.moto.stack_faults import FAULTS, Fault, Seen
from tests.moto.watched_stack import template_of, watched_stack
from tests.project import AGENTS, TEMPLATE
from tests.support.template_reading import alarms

PAGE = TEMPLATE.parent / "docs" / "explanation" / "profiles.md"
PROFILES = ("full", "standard", "lean")
QUICK = FAULTS[:2]
OF_CHECK = "full"
"""The profile in which `make check` tries each fault; `make verify` tries the others, too."""
LONGEST = 40
"""Minutes until it is said that nobody notices a fault."""
_TABLE = re.compile(r"(<!-- faults -->\n)(.*?)(<!-- end of faults -->\n)", re.DOTALL)


def test_the_faults_raise_every_alarm_of_every_profile() -> None:
    named = {seen[0] for fault in FAULTS for seen in fault.seen.values() if seen}
    named |= {alarm for fault in FAULTS for alarm in fault.then}
    raised = {alarm.replace("<Agent>", agent) for alarm in named for agent in AGENTS}
    for profile in PROFILES:
        assert set(alarms(template_of(profile))) <= raised, profile


def mark_of(fault: Fault, profile: str) -> Sequence[pytest.MarkDecorator]:
    if fault in QUICK:
        return ()
    return [pytest.mark.exhaustive if profile == OF_CHECK else pytest.mark.verify]


@pytest.mark.parametrize(
    ("fault", "profile"),
    [
        pytest.param(one, profile, id=f"{one.what}, {profile}", marks=mark_of(one, profile))
        for one in FAULTS
        for profile in PROFILES
        if profile != "lean" or one.happens_in_lean
    ],
)
def test_a_fault_is_noticed_in_the_profile_as_the_table_says(
    roundsman_services: Services, roundsman_clock: Clock, fault: Fault, profile: str
) -> None:
    seen = fault.seen[profile]
    with watched_stack(roundsman_services, roundsman_clock, profile) as world:
        fault.begins(world)
        wanted = {*(seen[:1] if seen else ()), *(fault.then if profile == "full" else ())}
        for _ in range(LONGEST):
            world.pass_minutes(1)
            if wanted and world.noticed.keys() >= wanted:
                break
        assert world.noticed.keys() >= wanted
        if seen is None:
            assert not world.noticed
        else:
            assert world.noticed[seen[0]] <= seen[1]


def _cell(seen: Seen) -> str:
    if seen is None:
        return "-"
    by, minutes = seen
    kind, _, fault = by.partition(" ")
    word = "" if by.endswith("Alarm") else "alert of " if fault else "alert "
    return f"{word}`{fault or kind}`, {minutes} min"


def table() -> str:
    """The table of the page."""
    lines = ["| what goes wrong | " + " | ".join(f"`{one}`" for one in PROFILES) + " |"]
    lines.append("| --- | --- | --- | --- |")
    for fault in FAULTS:
        cells = [_cell(fault.seen[one]) for one in PROFILES]
        if not fault.happens_in_lean:
            cells[PROFILES.index("lean")] = "not in use"
        lines.append(f"| {fault.what} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("REWRITE_PAGES"):
        page = _TABLE.sub(lambda found: f"{found[1]}{table()}{found[3]}", page)
        PAGE.write_text(page, encoding="utf-8")
    (found,) = _TABLE.findall(page)
    assert found[1] == table()

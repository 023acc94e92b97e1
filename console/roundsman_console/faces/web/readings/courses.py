"""The course of orders as the overview and the page of a failure group show it.

A minute is the smallest time that is drawn, so CloudWatch is asked at most once a minute for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.model.bulk_run import BulkRecord
from roundsman.model.instants import MINUTE
from roundsman.model.states import END_STATES
from roundsman_console.aws.metrics import Ends
from roundsman_console.aws.versions import Published
from roundsman_console.base.clock import now
from roundsman_console.faces.web.drawings.course import CourseDrawing, draw
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.faces.web.readings.released import with_releases_here
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.course.course import SPANS, USUAL, OrdersOverTime, sources_sentence
from roundsman_console.facts.course.marks import (
    EventMark,
    MarkKind,
    deployment_marks,
    hold_marks,
    marks_between,
    read_versions_of,
    run_marks,
)
from roundsman_console.facts.course.reading import (
    LOCAL,
    Measured,
    read_stack,
    read_steps,
    stack_course,
)
from roundsman_console.facts.group.course import course_of, holds_about, span_since
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.inspector import Inspector

KEEP = MINUTE
"""How long the figures of CloudWatch are shown again, in ms: reading them costs money."""
KEEP_VERSIONS = 5 * MINUTE
DRAWN = ("accepted", "completed", "failed")
"""The series of all orders that are drawn."""

_MEASURED: dict[tuple[str, str, str], Cached[Measured]] = {}
"""What was read, by the span, the workflow and the step; both are empty for all orders."""
_VERSIONS: dict[str, Cached[Sequence[Published]]] = {}
"""The versions of each agent."""


@dataclass(frozen=True, slots=True)
class ShownCourse:
    """A course, and what a page needs beside it."""

    found: OrdersOverTime
    drawing: CourseDrawing
    period: str
    """The chosen span."""
    totals: Mapping[str, int | None]
    """How many orders came to each end; None if that is not known."""
    links: Mapping[str, str]
    """The addresses of pages, by what a mark is about."""
    not_read: str = ""
    """Why deployments are not known, as a sentence; empty if they are."""

    @property
    def periods(self) -> Mapping[str, int]:
        """The spans that can be chosen."""
        return SPANS

    @property
    def sources(self) -> str:
        """Where the numbers come from, in a sentence."""
        return sources_sentence(self.found)

    @property
    def is_late(self) -> bool:
        """Whether a number comes from CloudWatch, which has it some minutes later."""
        return any(one.missing != LOCAL for one in self.found.series if one.name == "accepted")

    def succeeded_since(self, instant: int | None) -> int | None:
        """How many attempts of the step succeeded since then (epoch ms); None if not known."""
        if "stepSucceeded" not in {one.name for one in self.found.series}:
            return None
        return self.found.counted_since("stepSucceeded", instant)

    @property
    def completed_share(self) -> float | None:
        """The share of the ended orders that completed; None if that is not known."""
        ended = {state: self.totals.get(state) for state in END_STATES}
        known = {state: count for state, count in ended.items() if count is not None}
        return Ends(known).completed_share if len(known) == len(ended) else None


def course_of_stack(
    inspector: Inspector, period: str, published: Sequence[Published] | None
) -> ShownCourse:
    """Read the course of all orders; `published` are the versions of the functions, None if they
    were not read.

    Of bulk runs it has only that they began: no page asks for each of them.
    """
    stack, chosen, at = inspector.stack, period if period in SPANS else USUAL, now()
    measured = _measured(inspector, chosen, "", "")
    marks = marks_between(
        stack, measured.since, at + 1, published=published or (), runs=stack.bulk_runs.listed()
    )
    not_read = "Deployments are not known yet." if published is None else ""
    found = stack_course(measured, marks, at)
    totals = {
        name: None if None in (known := _known(counts, measured)) else sum(filter(None, known))
        for name, counts in measured.parts.items()
    }
    return ShownCourse(found, draw(found, DRAWN), chosen, totals, _links(marks), not_read)


def course_of_group(
    inspector: Inspector,
    group: GroupNow,
    runs: Sequence[BulkRecord],
    period: str,
    sentence: str = "",
) -> ShownCourse:
    """Read the course of the orders of a failure group; `runs` are the bulk runs over it.

    `sentence` takes the place of that of the course, if it is not empty.
    """
    at = now()
    chosen = period if period in SPANS else span_since(group.first_at, at)
    measured = _measured(inspector, chosen, group.workflow, group.step)
    published = _published(inspector, group)
    marks = _marks_of(inspector, group, runs, published.value or (), measured.since, at)
    found = course_of(group, measured, marks, at)
    found = replace(found, sentence=sentence or found.sentence)
    # Where there are no metrics at all, one sentence below the drawing says it.
    drawn = [one.name for one in found.series if one.missing != LOCAL]
    why = f"Deployments are not known: {published.problem}" if published.problem else ""
    return ShownCourse(found, draw(found, drawn), chosen, {}, _links(found.marks), why)


def _published(inspector: Inspector, group: GroupNow) -> Part[Sequence[Published]]:
    """Read the versions of the agent of the group; none if it has no agent."""
    if group.agent is None:
        return Part(())
    agent = group.agent.name
    kept = _VERSIONS.setdefault(agent, Cached(KEEP_VERSIONS))
    return part(lambda: kept.get(inspector, lambda: read_versions_of(inspector.stack, agent)))


def _measured(inspector: Inspector, period: str, workflow: str, step: str) -> Measured:
    def read() -> Measured:
        at, span = now(), SPANS[period]
        if not workflow:
            return read_stack(inspector.stack, at, span)
        return read_steps(inspector.stack, workflow, step, at, span)

    kept = _MEASURED.setdefault((period, workflow, step), Cached(KEEP))
    return kept.get(inspector, read)


def _known(counts: Sequence[int | None], measured: Measured) -> Sequence[int | None]:
    """The numbers of the minutes of which CloudWatch should have all by now, and later ones."""
    due = (measured.settled - measured.since) // MINUTE
    return [*counts[:due], *(one or 0 for one in counts[due:])]


def _marks_of(
    inspector: Inspector,
    group: GroupNow,
    runs: Sequence[BulkRecord],
    published: Sequence[Published],
    since: int,
    at: int,
) -> list[EventMark]:
    """What was done to the agent, to orders of the workflow, and to the orders of the group."""
    stack, agent = inspector.stack, group.agent.name if group.agent else ""
    stored = holds_about(group, stack.holds.stored())
    return [
        *deployment_marks(published),
        *with_releases_here(inspector, hold_marks(stored, at), agent, since),
        *run_marks(record.run for record in runs),
    ]


def _links(marks: Sequence[EventMark]) -> Mapping[str, str]:
    return {one.about: f"/bulk/{one.about}" for one in marks if one.kind is MarkKind.BULK_RUN}

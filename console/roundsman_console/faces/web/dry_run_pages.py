"""Pages that are worked out from many orders, which may take minutes.

The page of a few orders appears at once. Otherwise the browser goes to the progress of the work,
which has a link to the page when it has ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman_console.faces.web import results
from roundsman_console.faces.web.command_page import CommandPage
from roundsman_console.faces.web.page_parts import AWS_ERRORS
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.inspector import Inspector

PATIENCE = 2.0
"""The seconds after which a person wants to see that something happens."""


@dataclass(slots=True)
class _Outcome:
    """What came of a work, for the request that waits for it."""

    pages: list[CommandPage] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)


def shown_or_followed(
    inspector: Inspector, page: CommandPage, work_out: Callable[[Work], CommandPage]
) -> CommandPage:
    """Return the page that `work_out` returns; after PATIENCE, one that goes to its progress.

    Raises what `work_out` raises until then, and InspectorError if too many works run already.
    """
    outcome = _Outcome()

    def do(work: Work) -> WorkResult:
        try:
            found = work_out(work)
        except AWS_ERRORS as error:
            outcome.errors.append(error)
            raise
        outcome.pages.append(found)
        return WorkResult(
            found.sentence,
            good=not found.refused,
            page=f"/results/{results.keep(found)}",
            page_title="Show what it would do",
        )

    works = works_of(inspector)
    work = works.start(f"{page.title} {page.about}, dry run", page.back, do)
    if work.thread is not None:
        work.thread.join(PATIENCE)
    if work.runs or not (outcome.pages or outcome.errors):
        return replace(page, goes_to=f"/progress/{work.id}")
    works.forget(work)
    for error in outcome.errors:
        raise error
    return outcome.pages[0]

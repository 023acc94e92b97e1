"""What a verb would do to many orders, which may take minutes to find.

The page of a few orders appears at once. Otherwise the browser goes to the progress of the work,
which has a link to the page when it has ended. What was found is kept: a filter may match other
orders a moment later, and what is carried out is what was shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roundsman_console.acts.verb import Form, Preview, Progress
from roundsman_console.faces.web import results
from roundsman_console.faces.web.access.session import GO, Session
from roundsman_console.faces.web.command_page import CommandPage, not_sent
from roundsman_console.faces.web.expiring_values import ExpiringValues
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.inspector import Inspector

PREVIEWS: ExpiringValues[Preview] = ExpiringValues()
"""What was found, by the value of SHOWN of its form."""
PATIENCE = 2.0
"""The seconds after which a person wants to see that something happens."""


@dataclass(slots=True)
class _Outcome:
    """What came of a work, for the request that waits for it."""

    pages: list[CommandPage] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)


def agreed_preview(given: Form, session: Session) -> Preview | None:
    """Return what was shown for the form, if it is to be carried out; once."""
    kept = PREVIEWS.of(given) if GO in given else None
    return kept if kept is not None and session.take(given, kept.version) else None


def search(
    inspector: Inspector,
    page: CommandPage,
    given: Form,
    session: Session,
    look: Callable[[Progress], Preview],
) -> CommandPage:
    """Return the page with what `look` finds; after PATIENCE, one that goes to its progress.

    Raises what `look` raises until then, and InspectorError if too many works run already.
    """
    outcome = _Outcome()

    def do(work: Work) -> WorkResult:
        try:
            found = _shown(page, given, session, look(work.counts))
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


def _shown(page: CommandPage, given: Form, session: Session, found: Preview) -> CommandPage:
    """Return the page of what was found, which asks if there is something to do."""
    shown = ""
    if found.question and not found.blocked:
        shown = session.sign(given, found.version)
        PREVIEWS.keep(shown, found)
    words = found.found.words() if found.found is not None else ()
    return replace(
        page,
        title=found.title or page.title,
        sentence=f"{not_sent(given, False)}{found.sentence} {found.blocked}".strip(),
        problems=[*words, *found.notes],
        items=[replace(one, why=page.labelled(one.why)) for one in found.items],
        items_are=found.items_are,
        inputs=found.inputs,
        asks=bool(shown),
        shown=shown,
    )

"""Exporting tasks: each that matches a filter as a line of JSON, page by page, with a cursor."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.constraints import Count
from roundsman_console.base.counted import counted
from roundsman_console.base.result import document_of
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.lookup import plan_of
from roundsman_console.facts.order.masks import mask_with, shown
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.orders.listing import Page, find
from roundsman_console.facts.orders.selection import Selection, tags_of

AT_ONCE = 500  # tasks read per page at most; the cursor advances after each page


@dataclass(frozen=True, slots=True)
class Exported:
    """The progress of an export. The counts are numbers of tasks."""

    exported: Count = 0
    looked_at: Count = 0
    unreadable: Count = 0
    """The number of records that this code cannot read."""
    cursor: str | None = None
    """The value of --after to continue with; null if all is written, or nothing was."""
    whole: bool = False
    """Whether no task is left to export."""
    stopped: str | None = None
    """Why the export stopped early; null if it did not, or if it reached --limit."""

    @property
    def sentence(self) -> str:
        """The progress in words, for people."""
        sentences = [f"{counted(self.exported, 'task')} written, {self.looked_at} examined."]
        if self.unreadable:
            sentences.append(f"{self.unreadable} could not be read.")
        if self.stopped is not None:
            sentences.append(f"Stopped: {self.stopped}.")
        if not self.whole:
            sentences.append("More tasks may exist.")
        return " ".join(sentences)


@dataclass(frozen=True, slots=True)
class ExportedTo(Exported):
    """The progress of an export to a file.

    Each line of the file is an object as `roundsman show` prints it, without history and, by
    default, without results.
    """

    to: str = ""
    """The name of the file."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Converts tasks to lines of JSON, with masked values masked."""

    stack: DeployedStack
    with_orders: bool
    """Whether the lines contain the order and the results of the steps."""

    def of(self, page: Page) -> list[str]:
        """Return the lines of a page, without the tasks whose plan or order cannot be read."""
        lines: list[str] = []
        for task in page.tasks:
            with suppress(SchemaTooNew, UnreadableRecord):
                lines.append(json.dumps(self._document(task), separators=(",", ":")) + "\n")
        return lines

    def _document(self, task: Task) -> dict[str, object]:
        plan = plan_of(self.stack, task)
        needed = self.with_orders or (plan is not None and plan.masked)
        row = self.stack.tasks.order(task.task_id) if needed else None
        mask = mask_with(task, plan, row)
        facts = OrderFacts(shown(task, plan, mask), plan, at=now())
        whole = document_of(order_document(facts, self.stack.trace_of(task)))
        document = {**_without("history", whole), "tags": tags_of(task)}
        if self.with_orders:
            content = None if row is None else mask.input(task.input(row.content))
            return {**document, "order": content}
        return document | {"steps": [_without("result", step) for step in whole["steps"]]}


def _without(field: str, document: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in document.items() if name != field}


@dataclass(frozen=True, slots=True)
class ExportedPage:
    """The lines of one page of an export, and how far the export is with them."""

    text: str
    progress: Exported


def export_pages(
    lines: Lines, selection: Selection, *, after: str | None = None, limit: int | None = None
) -> Iterator[ExportedPage]:
    """Yield the tasks that match, page by page; at most `limit` tasks, or all of them.

    `after` is the cursor of an export that was interrupted. If AWS throttles or refuses a call, the
    last page is empty, and its progress has the reason and the cursor to continue from. Raises
    CallRefused only if no task was read yet, and InvalidCursor.
    """
    progress = Exported(cursor=after)
    try:
        while not progress.whole and (limit is None or progress.exported < limit):
            most = AT_ONCE if limit is None else min(AT_ONCE, limit - progress.exported)
            page = find(lines.stack, selection, after=progress.cursor, limit=most, budget=AT_ONCE)
            written = lines.of(page)
            progress = _further(progress, page, len(written))
            yield ExportedPage("".join(written), progress)
    except (TryAgain, CallRefused) as error:
        if isinstance(error, CallRefused) and not progress.looked_at:
            raise  # nothing was read: the error of the call says what to do about it
        yield ExportedPage("", replace(progress, stopped=str(error)))


def _further(progress: Exported, page: Page, written: int) -> Exported:
    unreadable = len(page.unreadable) + len(page.tasks) - written
    return Exported(
        exported=progress.exported + written,
        looked_at=progress.looked_at + page.looked_at,
        unreadable=progress.unreadable + unreadable,
        cursor=page.cursor,
        whole=page.whole,
    )

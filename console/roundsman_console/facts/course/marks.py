"""What was done to a stack between two instants: deployments, holds, releases and bulk runs.

    marks = marks_between(stack, since, until)

AWS and the stack keep what follows, and nothing is stored for it:

- a deployment: when the version of a function was published. A rollback moves an alias, which has
  no time;
- a hold: the last one of each agent, workflow and kind, until it is released;
- a release: the last one of each agent, without who released it. The release of a hold on orders
  has no time;
- a bulk run: each of the last 90 days.

All but `marks_between` and `read_runs` is pure.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Annotated

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import ListedRun, Run
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.holds import BREAKER, ENDED, Hold
from roundsman.model.instants import MINUTE, format_duration
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import Published, functions_of, read_published
from roundsman_console.base.counted import counted
from roundsman_console.base.result import EpochMs, Shown
from roundsman_console.base.threads import map_in_threads

ONE_DEPLOYMENT = 5 * MINUTE
"""Versions that are published within this time (in ms) of each other are of one deployment."""
MOST_RUNS = 20
"""The number of bulk runs, the newest ones, of which more is read than that they began."""
RELEASED_SINCE = "it was released since; when, by whom and why are not kept"
READERS = 4  # the number of functions that are read concurrently


class MarkKind(StrEnum):
    """What was done."""

    DEPLOYMENT = "deployment"
    HOLD = "hold"
    CIRCUIT = "circuit"
    """A circuit breaker opened."""
    RELEASE = "release"
    """A hold was released, or ended by itself."""
    BULK_RUN = "bulk run"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMark:
    """Something that was done to the stack at one instant."""

    at: EpochMs
    kind: MarkKind
    about: str
    """The agent, the orders that were held, the functions, or the id of the bulk run."""
    words: Annotated[str, Shown("What")]
    """What was done, without who did it and when."""
    by: str | None
    """Who did it, as they said; null if that is not known."""


def marks_between(
    stack: DeployedStack,
    since: int,
    until: int,
    *,
    published: Sequence[Published] | None = None,
    runs: Sequence[Run | ListedRun] | None = None,
) -> list[EventMark]:
    """Return what was done at or after `since` and before `until` (epoch ms), the earliest first.

    `published` are the versions of the functions; None reads them, with a request for each function
    of the stack. `runs` are the bulk runs; None reads them, with one request, and at most two more
    for each of MOST_RUNS. The holds take one request. A local AWS has no versions.

    Raises TryAgain or CallRefused, and the errors of boto3.
    """
    if published is None:
        published = read_versions_of(stack)
    if runs is None:
        runs = read_runs(stack, since, until)
    found = [
        *deployment_marks(published),
        *hold_marks(stack.holds.stored(), until),
        *run_marks(runs),
    ]
    return within(found, since, until)


def within(marks: Iterable[EventMark], since: int, until: int) -> list[EventMark]:
    """Return the marks at or after `since` and before `until` (epoch ms), the earliest first."""
    return sorted((one for one in marks if since <= one.at < until), key=lambda one: one.at)


def read_versions_of(stack: DeployedStack, about: str | None = None) -> list[Published]:
    """Read the published versions of all functions of the stack, or of the agent `about`."""
    if not stack.has_cloudwatch:
        return []
    wanted = None if about is None else about.replace("_", "").lower()
    functions = [
        one for one in functions_of(stack.outputs).items() if wanted in (None, one[0].lower())
    ]
    read = map_in_threads(READERS, lambda one: read_published(stack.lambda_client, *one), functions)
    return [version for versions in read for version in versions]


# --- Deployments ---------------------------------------------------------------------------------


def deployment_marks(published: Iterable[Published]) -> Iterator[EventMark]:
    """Yield one mark for the versions that were published together."""
    together: list[Published] = []
    for one in sorted(published, key=lambda version: version.at):
        if together and one.at - together[-1].at > ONE_DEPLOYMENT:
            yield _deployment(together)
            together = []
        together.append(one)
    if together:
        yield _deployment(together)


def _deployment(versions: Sequence[Published]) -> EventMark:
    by_name = sorted(versions, key=lambda one: one.name)
    newest = [
        max(same, key=lambda one: one.version)
        for _, same in groupby(by_name, key=lambda one: one.name)
    ]
    return EventMark(
        at=versions[0].at,
        kind=MarkKind.DEPLOYMENT,
        about=", ".join(one.name for one in newest),
        words=f"published {', '.join(f'{one.name} version {one.version}' for one in newest)}",
        by=None,
    )


# --- Holds and releases --------------------------------------------------------------------------


def hold_marks(stored: Iterable[Hold], now: int) -> Iterator[EventMark]:
    """Yield when each stored hold began, and when it ended or the agent was released.

    `now` is an instant (epoch ms) at which a hold with a later end is in force.
    """
    for hold in stored:
        if hold.unreadable:
            continue
        if hold.agent and hold.until == ENDED:
            words = f"released {hold.target}; the hold, by whom and why are not kept"
            yield _of_hold(hold, hold.since, MarkKind.RELEASE, words, None)
            continue
        yield hold_mark(hold)
        if ENDED < hold.until <= now:
            ended = "the circuit" if hold.kind == BREAKER else "the hold"
            words = f"{ended} of {hold.target} ended by itself"
            yield _of_hold(hold, hold.until, MarkKind.RELEASE, words, None)


def hold_mark(hold: Hold) -> EventMark:
    """Return the mark of the begin of a hold, or of an open circuit."""
    if hold.kind == BREAKER:
        words = f"the circuit of {hold.target} opened: {hold.reason}"
        return _of_hold(hold, hold.since, MarkKind.CIRCUIT, words, None)
    lasts = f" for {format_duration(hold.until - hold.since)}" if hold.until != ENDED else ""
    gone = f"; {RELEASED_SINCE}" if hold.until == ENDED else ""
    words = f"held {hold.target}{lasts}: {hold.reason}{gone}"
    return _of_hold(hold, hold.since, MarkKind.HOLD, words, hold.by)


def _of_hold(hold: Hold, at: int, kind: MarkKind, words: str, by: str | None) -> EventMark:
    return EventMark(at=at, kind=kind, about=hold.target, words=words, by=by or None)


# --- Bulk runs -----------------------------------------------------------------------------------


def read_runs(stack: DeployedStack, since: int, until: int) -> list[Run | ListedRun]:
    """Read the bulk runs that began in this time; of the earlier than MOST_RUNS, only that.

    The same holds for a run that cannot be read.
    """
    listed = [one for one in stack.bulk_runs.listed() if since <= one.started_at < until]
    found: list[Run | ListedRun] = [*listed[:-MOST_RUNS]]
    for one in listed[-MOST_RUNS:]:
        try:
            record = stack.bulk_runs.load(one.run_id, one.starter)
        except UnreadableRecord:
            record = None
        found.append(one if record is None else record.run)
    return found


def group_of(run: Run) -> str | None:
    """Return the failure group that the run's orders were selected by; None if there is none."""
    try:
        words = shlex.split(run.selection)
    except ValueError:  # it is cut at its maximum length
        return None
    return next((group for option, group in pairwise(words) if option == "--group"), None)


def run_marks(runs: Iterable[Run | ListedRun]) -> Iterator[EventMark]:
    """Yield when each bulk run began. Of one that is only listed, it is not known over what."""
    for run in runs:
        if isinstance(run, Run):
            what = COMMAND_KINDS[type(run.event)]
            words = f"{what} of {counted(run.selected, 'order')}: {run.reason}"
            about, by = run.id, run.by
        else:
            words, about, by = "began", run.run_id, _session(run.starter)
        yield EventMark(at=run.started_at, kind=MarkKind.BULK_RUN, about=about, words=words, by=by)


def _session(starter: str) -> str:
    """Return the name of the session in a `SenderId`, which is often that of a person."""
    principal, _, session = starter.partition(":")
    return session or principal

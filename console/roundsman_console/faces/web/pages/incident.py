"""An incident: a failure group with what was done about it, also when no order is in it any more.

An open group has its members and its row. Once it is over, the stack has forgotten it, and the
bulk runs over it tell what it was: they keep their orders and their results for 90 days.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord, OrderResult
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.failure import AWAITS_RESULT, NO_STEP, RETRIED, UNDO_FAILED, UNDONE, UNREADABLE
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, format_duration, second
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.aws.group_notes import READ_EVERY, GroupNotes
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import NotFound
from roundsman_console.faces.web.access.session import current_session
from roundsman_console.faces.web.readings.released import ReleasedHere, released_here
from roundsman_console.faces.web.readings.runs_of_group import runs_over
from roundsman_console.faces.web.readings.tried import tried_here
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.course.course import time_of_day
from roundsman_console.facts.group.reading import CALM_FOR, GroupNow
from roundsman_console.facts.group.trial import Trial, TrialState, trial_of
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.order.step_text import error_words
from roundsman_console.inspector import Inspector

STILL_FAILS = 2 * MINUTE
"""A failure within this time (in ms) means that orders still fail."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that was done about an incident."""

    at: int
    """In epoch ms."""
    words: str
    address: str = ""
    """The address of its page; empty if it has none."""
    name: str = ""
    """The name of its page."""


def what_happened(group: GroupNow) -> str:
    """Return in a sentence what happened to the orders of the group."""
    one = group.count.count == 1 and not group.count.more
    many = f"{many_orders(group)} of {group.workflow}"
    at = "as a whole" if group.step == NO_STEP else f"at {group.step}"
    was, is_, they = ("was", "is", "needs") if one else ("were", "are", "need")
    what = {
        UNDONE: f"{many} failed {at} and {was} undone",
        UNDO_FAILED: f"{many} could not be undone {at} and {they} a person",
        RETRIED: f"{many} {'fails' if one else 'fail'} {at} and {is_} tried again",
        AWAITS_RESULT: f"{many} {'waits' if one else 'wait'} for the result of {group.step}",
        UNREADABLE: f"{many_orders(group)} cannot be read",
    }.get(group.how, f"{many} failed {at} and {they} a person")
    error = error_words(group.error_type, group.message)
    if not group.count.count:
        what = f"Orders of {group.workflow} failed {at}"
    return f"{what}: {error}" if error else what


def many_orders(group: GroupNow) -> str:
    """Return the number of orders in the group: `1 order`, `more than 10,000 orders`."""
    many = f"{group.count.count:,}".replace(",", "\u202f")
    if group.count.more:
        return f"more than {many} orders"
    return f"{many} order{'' if group.count.count == 1 else 's'}"


def last_release(inspector: Inspector, group: GroupNow) -> ReleasedHere | None:
    """Return the last release of the agent in this console since the group began; None if none."""
    if group.agent is None or group.first_at is None:
        return None
    return next(reversed(released_here(inspector, group.agent.name, group.first_at)), None)


def is_quiet_since(released: ReleasedHere | None, group: GroupNow) -> bool:
    """Return whether the agent was released, and no order has failed for this cause since."""
    return released is not None and (group.last_at is None or group.last_at <= released.at)


def still_fails(
    group: GroupNow,
    at: int,
    *,
    held: bool = False,
    released: ReleasedHere | None = None,
    runs: Sequence[BulkRecord] = (),
    succeeded: int | None = None,
) -> str:
    """Return in a sentence whether orders still fail for this cause at `at` (epoch ms).

    `held` is whether the agent has a hold or an open circuit, and `released` its last release.
    `succeeded` is how many attempts of the step succeeded since the last failure; None if that is
    not known.
    """
    if not group.count.count or group.last_at is None:
        return _calm(group, at)
    quiet = at - group.last_at
    # The time of an order that is tried again is that of its first failure.
    none = "no further order has failed" if group.how == RETRIED else "no order has failed"
    lately = f"N{none[1:]} so in the last {format_duration(quiet)}"
    if held:
        still = quiet < STILL_FAILS
        return (
            "The agent is held, so no more orders fail."
            if still
            else f"{lately}; the agent is held."
        )
    passed = _completed_since(runs, group.last_at)
    if released is not None and is_quiet_since(released, group):
        what = [f"{none} so since", _woken(released.woken), passed]
        since = f"{released.agent} was released at {second(released.at)}"
        return f"{since}: {'; '.join(words for words in what if words)}."
    if quiet < STILL_FAILS:
        again = released is not None and group.last_at > released.at
        return "Orders fail again since the release." if again else "Orders still fail."
    if passed:
        return f"{lately}, and {passed}."
    return f"{lately}{_succeeded_since(group, succeeded)}"


def _calm(group: GroupNow, at: int) -> str:
    """Return in a sentence since when the group is empty, and when it is over."""
    row = group.row
    if row is None:
        return "No order is in the group now."
    if row.closed_at is not None:
        return f"Empty, and over since {time_of_day(row.closed_at, at)} UTC."
    wait = format_duration(CALM_FOR)
    if row.clear_since is None:
        return f"No order is in the group now. It is over {wait} after the supervisor has seen it."
    clear = time_of_day(row.clear_since + CALM_FOR, at)
    ends = f"all-clear at {clear} UTC" if row.alerted_at is not None else f"over at {clear} UTC"
    return (
        f"Empty since {time_of_day(row.clear_since, at)}, {ends}, if no order fails so until then."
    )


def _succeeded_since(group: GroupNow, succeeded: int | None) -> str:
    """Whether an attempt of the step succeeded since the last failure."""
    if succeeded is None:
        where = "its end" if group.step == NO_STEP else group.step
        return f". Whether an order has come to {where} since is not known here."
    many = counted(succeeded, "attempt") if succeeded else "no attempt"
    return f", and {many} of {group.step} succeeded since."


def _completed_since(runs: Sequence[BulkRecord], last: int) -> str:
    """How many orders are Completed of the runs that began after the last failure (epoch ms)."""
    begun = [one.progress for one in runs if one.run.started_at >= last]
    many = sum(progress.count(OrderResult.COMPLETED) for progress in begun)
    if not many:
        return ""
    return f"{counted(many, 'order')} of a bulk run {'is' if many == 1 else 'are'} Completed"


def _woken(woken: Woken | None) -> str:
    """How many orders a release has woken itself; empty if that is not known."""
    if woken is None:
        return ""
    if not woken.first:
        return "" if woken.more else "no order waited for it"
    first = len(woken.first)
    verb = "was" if first == 1 else "were"
    others = ", the others by the supervisor" if woken.more else ""
    return f"{counted(first, 'waiting order')} {verb} woken{others}"


def read_runs(inspector: Inspector, group: str, known: GroupNow | None) -> list[BulkRecord]:
    """Return the bulk runs over the group since it began, the oldest first."""
    return runs_over(inspector, group, (known.first_at if known else None) or 0)


def acts_of(inspector: Inspector, runs: Sequence[BulkRecord], agent: str, since: int) -> list[Act]:
    """Return what was done since `since` (epoch ms), the earliest first.

    The stack keeps a hold until the next one replaces it or it is released; a release and the hold
    that it ended are known until this console ends.
    """
    released = released_here(inspector, agent, since) if agent else []
    stored = inspector.stack.holds.stored() if agent else []
    holds = [
        *(hold for hold in stored if (hold.agent, hold.kind) == (agent, OPERATOR)),
        *(one.hold for one in released if one.hold is not None),
    ]
    acts = [
        *(_hold_act(hold) for hold in holds if hold.until >= since),
        *(_release_act(one) for one in released),
        *(_run_act(record) for record in runs),
    ]
    return sorted(acts, key=lambda act: act.at)


def _run_act(record: BulkRecord) -> Act:
    run, results = record.run, _results_of(record)
    orders = "1 order" if run.selected == 1 else f"{run.selected:,} orders"
    words = f"{COMMAND_KINDS[type(run.event)]} of {orders} by {run.by}: {run.reason}."
    state = f" It is {record.state.value}: {', '.join(results)}." if results else ""
    return Act(run.started_at, words + state, f"/bulk/{run.id}", run.id)


def _results_of(record: BulkRecord) -> list[str]:
    """How many orders of a run came to each result."""
    results = [
        f"{record.progress.count(result):,} {RESULT_WORDS[result]}"
        for result in OrderResult
        if record.progress.count(result)
    ]
    if record.progress.refusals:
        results.append(f"{record.progress.refusals:,} refused")
    if record.progress.on_their_way:
        results.append(f"{len(record.progress.on_their_way):,} in flight")
    if record.left:
        results.append(f"{record.left:,} not reached")
    return results


def how_far(record: BulkRecord) -> str:
    """Return in a sentence how far a run is: `b-... is finished: 12 of 12 orders Completed.`."""
    first, *more = _results_of(record) or ["0 reached"]
    count, word = first.split(" ", 1)
    words = ", ".join((f"{count} of {counted(record.run.selected, 'order')} {word}", *more))
    return f"{record.run.id} is {record.state.value}: {words}."


RESULT_WORDS: Mapping[OrderResult, str] = {
    OrderResult.COMPLETED: "Completed",
    OrderResult.UNDONE: "Undone",
    OrderResult.CANCELLED: "Cancelled",
    OrderResult.TAKEN: "done",
    OrderResult.FAILED: "failed again",
}


def _hold_act(hold: Hold) -> Act:
    lasts = format_duration(hold.until - hold.since)
    return Act(hold.since, f"hold of {hold.agent} for {lasts} by {hold.by}: {hold.reason}.")


def _release_act(one: ReleasedHere) -> Act:
    why = f": {one.reason}" if one.reason else ""
    return Act(one.at, f"release of {one.agent} by {one.by}{why}.")


def read_trial(inspector: Inspector, group: str) -> Trial | None:
    """Return what became of the order that was tried last in this console; None if none was.

    Nothing is known of one that is not stored any more.
    """
    tried = tried_here(inspector, group)
    if tried is None:
        return None
    try:
        return trial_of(tried, find_shown(inspector.stack, tried.order))
    except (NotFound, UnreadableRecord) as error:
        return Trial(tried, TrialState.ENDED, str(error))


def others_here(notes: GroupNotes, group: str, at: int) -> Mapping[str, int]:
    """Return who else looks at the group at `at` (epoch ms), and when each has read it.

    It is stored that the person reads it who is signed in, if they may send commands. In the
    console of one person nobody is.
    """
    session = current_session()
    if not session.person:
        return {}
    here = dict(notes.readers(group))
    read_at = here.pop(session.person, 0)
    if not session.read_only and at - read_at >= READ_EVERY:
        notes.reads(group, session.person)
    return dict(sorted(here.items(), key=lambda one: -one[1]))


def hold_of(agent: AgentNow | None) -> Hold | None:
    """Return the operator's hold of the agent; None if there is none, or no agent."""
    return None if agent is None else agent.hold(OPERATOR)

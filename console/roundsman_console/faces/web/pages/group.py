"""Failure groups: the list, and one group as an incident: stop, repair, let go on."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord
from roundsman.model.failure import AWAITS_RESULT, NO_STEP, RETRIED, UNDO_FAILED, UNDONE, UNREADABLE
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.acts.bulk.start import GOES
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.base.clock import now
from roundsman_console.base.constraints import GROUP_ID
from roundsman_console.base.errors import NotFound
from roundsman_console.faces.web import results
from roundsman_console.faces.web.access.session import current_session
from roundsman_console.faces.web.command_page import INCIDENT, CommandPage, NextStep
from roundsman_console.faces.web.forms.bulk import RELEASE, form_on_many, verbs_on_many
from roundsman_console.faces.web.forms.stack_verb import form_on
from roundsman_console.faces.web.forms.trial import trial_form
from roundsman_console.faces.web.pages.incident import (
    acts_of,
    hold_of,
    how_far,
    is_quiet_since,
    last_release,
    many_orders,
    others_here,
    read_runs,
    read_trial,
    still_fails,
    what_happened,
)
from roundsman_console.faces.web.readings.courses import course_of_group
from roundsman_console.faces.web.readings.unreadable_parts import part
from roundsman_console.faces.web.results import KeptPage
from roundsman_console.facts.course.course import LONGEST
from roundsman_console.facts.group.effects import effects_words, group_effects, order_effects
from roundsman_console.facts.group.next_commands import commands_of
from roundsman_console.facts.group.over import as_group, failed_words, read_cause
from roundsman_console.facts.group.reading import NO_SUCH_GROUP, OVER_WITH_ORDERS, STATES, GroupNow
from roundsman_console.facts.group.repair import RepairHelp, repair_of
from roundsman_console.facts.group.trial import Trial
from roundsman_console.inspector import Inspector

ENDED: Mapping[str, str] = {
    UNDONE: "undone",
    UNDO_FAILED: "whose undo failed",
    RETRIED: "retried",
    AWAITS_RESULT: "waiting for a result",
    UNREADABLE: "unreadable",
}
"""What became of the orders of a group, by how they failed; `archived` if it is not listed."""

GOES_ON: Mapping[str, str] = {
    UNDONE: "Undone orders begin again from the start. Each call is made as a new request, so what "
    "happened before would happen again: an order of which an effect may stand is refused. "
    "\u201cBegin again from the start\u201d is set, because all of them are Undone.",
    UNDO_FAILED: "Their failed undo is tried again under the same keys. They end Undone. An order "
    "that goes on without the step, since it was not needed or left out, ends Completed.",
    RETRIED: "Each goes on by itself at its next attempt. To begin it now, run them now.",
    AWAITS_RESULT: "The step has taken effect. "
    "Each order goes on once it is resolved with the result.",
    UNREADABLE: "An order whose record cannot be read takes no command. "
    "The page of the order says what is wrong with it.",
}
_REASON_TO_GO_ON = {
    "run-all": "Reason for the attempt now",
    "resubmit-all": "Reason for the resubmission",
}
TRIAL_SECONDS = 3
"""The time from one reading of the page to the next while an order is tried."""
ARCHIVED_GO_ON = "Their failed steps are tried again under the same keys."
MOST_LISTED = 100
"""The number of failure groups that are listed, those with most orders."""
ROWS_UNFOLDED = 10
"""A page with more orders folds their rows away."""


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the open failure groups, those with most orders first."""
    groups = inspector.groups()
    listed = groups[:MOST_LISTED]
    return {"groups": listed, "not_listed": len(groups) - len(listed), "NO_STEP": NO_STEP}


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one failure group, also when it is over. Raises NotFound if this is no group id."""
    name = given["group"]
    if not GROUP_ID.fullmatch(name):
        raise NotFound(NO_SUCH_GROUP)
    group, at = inspector.group(name), now()
    runs = read_runs(inspector, name, group)
    trial = read_trial(inspector, name)
    shared = {
        "id": name,
        "runs": runs,
        "result": _result(given, group, runs),
        "NO_STEP": NO_STEP,
        "trial": trial,
        "notes": part(lambda: inspector.stack.group_notes.of(name), "notes"),
        "every": TRIAL_SECONDS if trial is not None and trial.goes_on else None,
    }
    if group is None:
        return {**shared, **_read_over(inspector, name, runs, given.get("period", ""), at)}
    agent, first = group.agent, group.first_at or group.counted_at
    held, released = bool(agent and agent.holds), last_release(inspector, group)
    loaded = inspector.stack.records.load_many([one.task_id for one in group.newest], at).tasks
    tasks = [task for one in group.newest if (task := loaded.get(one.task_id)) is not None]
    orders = [task for task in tasks if task.failure == group.id]
    steps = steps_in_order(inspector, orders)
    course = part(
        lambda: course_of_group(inspector, group, runs, given.get("period", "")), "orders over time"
    )
    succeeded = course.value.succeeded_since(group.last_at) if course.value else None
    open_run = next((one for one in runs[::-1] if one.state in GOES), None)
    return {
        **shared,
        "group": group,
        "what_happened": what_happened(group),
        "here": part(lambda: others_here(inspector.stack.group_notes, name, at)),
        "ended": ENDED.get(group.how, "archived"),
        "over": OVER_WITH_ORDERS if group.count.count and group.standing == "over" else "",
        "still": still_fails(
            group, at, held=held, released=released, runs=runs, succeeded=succeeded
        ),
        "course": course,
        "effects": effects_words(group_effects(orders, steps), group.count) if orders else "",
        "states": Counter(task.state.value for task in orders),
        "orders": orders,
        "effects_of": partial(order_effects, steps=steps),
        "failed_at": {one.task_id: one.failed_at for one in group.newest},
        "hold": hold_of(agent),
        "released": released if not held and is_quiet_since(released, group) else None,
        "step_now": _step_now(
            group, begun=bool(runs) or (not held and is_quiet_since(released, group))
        ),
        "forms": _forms(group),
        "open_run": open_run,
        "try_one": None if open_run or (trial and trial.goes_on) else _try_one(group, trial),
        "others": _others(group),
        "goes_on": GOES_ON.get(group.how, ARCHIVED_GO_ON),
        "repair": _repair(inspector, group, at),
        "acts": acts_of(inspector, runs, agent.name if agent else "", first),
        "commands": commands_of(group),
        "rows_unfolded": ROWS_UNFOLDED,
    }


def _read_over(
    inspector: Inspector, name: str, runs: Sequence[BulkRecord], period: str, at: int
) -> Mapping[str, object]:
    """Read what is known of a group that is over."""
    cause = read_cause(inspector.stack, runs)
    agent, since = (cause.agent, cause.at) if cause else ("", 0)
    acts = acts_of(inspector, runs, agent, since)
    course = None
    if cause is not None and at - cause.at < LONGEST:
        ended = as_group(cause, name, at)
        course = part(
            lambda: course_of_group(inspector, ended, runs, period, failed_words(cause, at)),
            "orders over time",
        )
    return {"group": None, "cause": cause, "course": course, "acts": acts, "commands": ()}


def _result(
    given: Mapping[str, str], group: GroupNow | None, runs: Sequence[BulkRecord]
) -> KeptPage | None:
    """What a form of this page has done, if the address names it.

    The way back from a hold is left out if the agent is not held any more. Of a bulk run that has
    begun, it is said how far it is.
    """
    found = results.find(given.get("result", ""))
    if found is None or found.page.hidden.get(INCIDENT) != given["group"]:
        return None
    follows = {step.address for step in found.page.next}
    for record in runs:
        if record.version and f"/bulk/{record.run.id}" in follows:
            found = replace(found, page=replace(found.page, sentence=how_far(record)))
    held = group is not None and hold_of(group.agent) is not None
    return found if held else replace(found, page=replace(found.page, way_back=None))


def steps_in_order(inspector: Inspector, orders: Sequence[Task]) -> Sequence[str]:
    """Return the steps of the plan of the newest order, in its order; empty if it is not known."""
    try:
        plan = inspector.stack.plans.plan(orders[0].plan) if orders else None
    except UnreadableRecord:
        return ()
    return [*plan.steps] if plan is not None else ()


def _step_now(group: GroupNow, *, begun: bool) -> int:
    """Return the step that is next: 1 to stop, 2 to repair, 3 to let go on; 0 for none.

    `begun` is whether the orders go on already, or the agent was released and nothing failed since.
    """
    if not group.count.count:
        return 0
    if begun or group.agent is None:
        return 3
    return 2 if group.agent.holds else 1


def _repair(inspector: Inspector, group: GroupNow, at: int) -> RepairHelp | None:
    if group.agent is None or group.first_at is None or group.last_at is None:
        return None
    return repair_of(inspector.stack, group.agent.name, group.first_at, group.last_at, at)


def _forms(group: GroupNow) -> Mapping[str, CommandPage | None]:
    """The forms on the page: hold or release, and the command that lets go on; None if one cannot
    apply.
    """
    found: dict[str, CommandPage | None] = dict.fromkeys(("hold", "release", "go_on"))
    if group.agent is not None:
        given = {INCIDENT: group.id, "agent": group.agent.name}
        release = form_on(ReleaseVerb, ReleaseVerb.on_agent(group.agent), given)
        if not release.impossible:
            found["release"] = replace(release, reason_label="Reason for the release")
        elif group.count.count:
            hold = form_on(HoldVerb, HoldVerb.on_agent(group.agent), given)
            found["hold"] = replace(hold, reason_label="Reason for the hold")
    name = _lets_go_on(group)
    if group.count.count and name:
        held = hold_of(group.agent)
        given = {INCIDENT: group.id, "group": group.id}
        given |= {RELEASE: held.agent} if held is not None else {}
        page = form_on_many(name, given, _states(group))
        found["go_on"] = replace(
            page,
            title=page.title.replace(" all", f" {many_orders(group)}"),
            reason_label=_REASON_TO_GO_ON[name] if held is None else "Reason for both",
        )
    return found


def _try_one(group: GroupNow, trial: Trial | None) -> Mapping[str, str] | None:
    """The form that tries one order; None if none can be tried.

    It is the oldest of the samples that was not tried before and of which no effect may stand, if
    there is one: an undone order of which one may does not begin again. It passes a hold.
    """
    if not group.samples or not _lets_go_on(group):
        return None
    before = trial.tried.order if trial is not None else ""
    best = sorted(
        group.samples, key=lambda task: (task.task_id == before, group_effects([task]).stands)
    )
    return trial_form(best[0], group.id, current_session())


def _lets_go_on(group: GroupNow) -> str:
    if group.how in (UNREADABLE, AWAITS_RESULT):
        return ""
    return "run-all" if group.how == RETRIED else "resubmit-all"


def _states(group: GroupNow) -> Collection[TaskState]:
    return STATES.get(group.how, frozenset())


def _others(group: GroupNow) -> Sequence[NextStep]:
    """The other commands that can apply to the orders, and the whole form of the first one."""
    main, about = _lets_go_on(group), f"group={group.id}&{INCIDENT}={group.id}"
    if not group.count.count or not main:
        return ()
    whole = NextStep("All options of this command", f"/commands/{main}?{about}")
    return (
        whole,
        *(
            NextStep(form_on_many(name, {"group": group.id}, ()).title, f"/commands/{name}?{about}")
            for name, verb in verbs_on_many().items()
            if name != main and verb.states & frozenset(_states(group))
        ),
    )

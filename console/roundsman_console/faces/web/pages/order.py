"""One order: what failed, what it waits for, its graph, its times, its data and its history."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json, canonical_json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, item_place, step_of
from roundsman_console.aws.links import AwsConsole, aws_console_of
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.result import document_of
from roundsman_console.faces.web.drawings.gantt import bars
from roundsman_console.faces.web.drawings.graph import FAILED, KINDS, QUIET, draw, kind_of
from roundsman_console.faces.web.forms.order import links_of
from roundsman_console.faces.web.readings.unreadable_parts import part
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.effects import erased_words, left_out_words, may_stand
from roundsman_console.facts.order.failure import (
    OrderFailure,
    failed_attempts,
    failures,
    rows_by_step,
)
from roundsman_console.facts.order.lookup import find_shown, shown_input
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_text import (
    agent_words,
    error_words,
    last_error,
    situation_words,
    span,
    step_facts,
)
from roundsman_console.facts.order.timeline import entries, happenings, not_known
from roundsman_console.facts.order.why_facts import why_of
from roundsman_console.inspector import Inspector

MOST_ITEMS = 8
"""Up to here the items of a fan-out are rows of the table of steps; more are folded away."""
MOST_ROWS = 12
"""Up to here all steps are rows; of more, those that need no look are folded away."""
MOST_CARDS = 3
"""The number of failures that are shown; the others are folded away."""
NEWEST = 20
"""The number of entries of the history that are shown; the earlier ones are folded away."""
ON_A_PAGE = 50
"""The most rows of steps that are folded away on the page, all kinds together, and of times and
entries of the history. More of them are on pages of their own, so that the page of an order of a
thousand steps is as large as that of an order of fifty."""
MOST_DIGITS = 7
MOST_LINES = 12
"""The number of lines of evidence, and of steps that wait for an answer, that are shown."""
MOST_TEXT = 4_000
"""The number of characters of a text that is shown; the whole of it is in the record."""
LOGS_AROUND = 15 * MINUTE
"""The log lines of a failure are sought from so long before it, the longest that a function may
run, until so long after it."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step in the table of steps."""

    name: str
    record: StepRecord
    situation: str
    """The situation where it says more than the state."""
    agent: str
    attempts: str
    """The number of failures, with the maximum number of attempts if there is one."""
    error: str
    result: str
    may_stand: bool
    """Whether its effect may have happened and is not undone."""
    failed: bool = False
    """Whether the order failed at this step, whatever its state is now."""

    @property
    def kind(self) -> str:
        """What the step is in one or two words."""
        return FAILED if self.failed else kind_of(self.record)

    @property
    def fan_out(self) -> str | None:
        """The fan-out of which it is the first item; None for any other step."""
        item = item_place(self.name)
        return item[0] if item and item[1] == 0 else None

    @property
    def problem(self) -> bool:
        """Whether the step needs a look: it failed, is tried again, or waits for its agent."""
        if self.kind in (FAILED, "undo failed"):
            return True
        troubled = self.record.error is not None or self.record.held_since is not None
        return troubled and self.kind not in QUIET


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """Steps that are folded away: the items of a fan-out, or steps of one kind."""

    title: str
    rows: tuple[StepRow, ...]
    step: str | None = None
    """The fan-out of which they are all items; None for steps of one kind."""
    first: int | None = None
    """Where the page of all steps with the first of them begins, if they are too many for this
    page; None if they are on it."""

    @property
    def states(self) -> tuple[tuple[ProcessState, int], ...]:
        """The number of steps in each state, the ones that need a look first."""
        kinds = {row.record.process_state: KINDS.index(kind_of(row.record)) for row in self.rows}
        counted = Counter(row.record.process_state for row in self.rows)
        return tuple(sorted(counted.items(), key=lambda one: kinds[one[0]]))


@dataclass(frozen=True, slots=True)
class StepRows:
    """The rows of the table of steps, those with a problem first, and what is folded away."""

    shown: tuple[StepRow, ...]
    folded: tuple[FoldedRows, ...] = ()
    problems: int = 0
    """How many of all steps have a problem."""
    whole: int = 0
    """How many steps there are."""
    start: int | None = None
    """On a page of all steps, in the order of the plan, the place of its first one; else None."""

    @property
    def names(self) -> frozenset[str]:
        """The steps and items whose rows are on the page."""
        folded = (row for group in self.folded if group.first is None for row in group.rows)
        return frozenset(row.name for row in (*self.shown, *folded))


@dataclass(frozen=True, slots=True)
class ErrorCard:
    """One failure at the top of the page."""

    failure: OrderFailure
    title: str
    logs: str | None
    """The address of the log lines about it; None where AWS has no console."""


@dataclass(frozen=True, slots=True)
class AwsLinks:
    """Addresses of the AWS console about the order; empty ones are not shown."""

    logs: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """The failures at the top of the page, and those that are folded away."""

    shown: tuple[ErrorCard, ...]
    more: tuple[ErrorCard, ...] = field(default=())


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one order. Raises NotFound if there is no such order.

    With `only` = `problems`, the table of steps has only those that need a look; with `from`, it
    has all steps from that place on, page by page, and so has the history with `history`. With
    `graph` = `whole`, no step of the drawing is folded.
    """
    facts = find_shown(inspector.stack, given["order"])
    stack, task, plan = inspector.stack, facts.task, facts.plan
    failed = failures(facts)
    happened = entries(happenings(facts))
    content = part(lambda: shown_input(stack, facts))
    aws = aws_console_of(stack)
    only = given.get("only") == "problems"
    whole = given.get("graph") == "whole"
    every = rows_of_steps(facts, failed)
    start = _place_of(given, "from", len(every))
    steps = fold(every, only_problems=only) if start is None else rows_from(every, start)
    graph = None if plan is None else draw(plan, task, failed_steps(failed), whole=whole)
    times = bars(facts, [name for one in failed for name in one.steps])
    newest = _place_of(given, "history", len(happened))
    waiting = [name for name, record in task.steps.items() if record.waiting]
    return {
        "task": task,
        "is_followed": is_followed(task),
        "erased": erased_words(task),
        "left_out": left_out_words(task),
        "plan": plan,
        "why": part(lambda: why_of(stack, facts)),
        "facts": step_facts(facts),
        "cards": cards_of(failed, facts, aws),
        "graph": graph,
        "whole_graph": whole,
        "bars": times,
        "times": [row for row in times.rows if row.step in steps.names]
        if len(times.rows) > ON_A_PAGE
        else times.rows,
        "steps": steps,
        "on_a_page": ON_A_PAGE,
        "most_lines": MOST_LINES,
        "most_text": MOST_TEXT,
        # A drawing leads to rows of steps, which may be on other pages.
        "drawn": {one.steps[0] for one in graph.nodes} - steps.names if graph else frozenset(),
        "only_problems": only,
        "uncompensated": facts.effects.without_compensation,
        "input": content.value is not None and pretty(content.value),
        "input_problem": content.problem,
        "happened": happened[newest : newest + ON_A_PAGE] if newest else happened[:NEWEST],
        "earlier": [] if newest else happened[NEWEST:ON_A_PAGE],
        "newest": newest or 0,
        "entries": len(happened),
        "anybody": any(one.happening.by for one in happened),
        "gaps": not_known(facts),
        "commands": links_of(task),
        "waiting": waiting,
        "links": AwsLinks() if aws is None else _links(aws, facts, stack.trace_of(task)),
    }


def is_followed(task: Task) -> bool:
    """Whether the page is live: the order goes on, owes a message, or waits for a person to act."""
    return not task.ended or bool(task.owed) or task.state is TaskState.ARCHIVED


def _place_of(given: Mapping[str, str], name: str, many: int) -> int | None:
    """Return the place of the first of `many` rows to show; None if the address names none."""
    text = given.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < MOST_DIGITS):
        raise InvalidArgument(f"The parameter {name} is the number of rows before: 0, 50, 100.")
    return min(int(text), max(0, many - 1))


def record_file(inspector: Inspector, order_id: str) -> tuple[str, str]:
    """Return the record of an order as a file: its name, and its JSON.

    The JSON has the fields of `roundsman show --json`, and `input`: null if the order table has no
    row for the order. Masked values are masked, and what was erased is not in it. Raises NotFound
    if there is no such order.
    """
    stack = inspector.stack
    facts = find_shown(stack, order_id)
    document = document_of(order_document(facts, stack.trace_of(facts.task)))
    content = {**document, "input": shown_input(stack, facts)}
    return f"{facts.task.task_id}.json", json.dumps(content, indent=2) + "\n"


def failed_steps(failed: Sequence[OrderFailure]) -> list[str]:
    """Return the steps and items that failed for good, and not those that are tried again."""
    return [name for one in failed if not one.tried_again for name in one.steps]


def cards_of(failed: Sequence[OrderFailure], facts: OrderFacts, aws: AwsConsole | None) -> Cards:
    """Return the failures with what the page says of each."""
    made = tuple(
        ErrorCard(one, _title(one), None if aws is None else _logs_of(aws, one, facts))
        for one in failed
    )
    return Cards(made[:MOST_CARDS], made[MOST_CARDS:])


def _title(failure: OrderFailure) -> str:
    if not failure.steps:
        return "The order failed"
    steps = span(failure.steps)
    what = f"The undo of {steps} failed" if failure.undo else f"{steps} failed"
    return f"{what}, and is tried again" if failure.tried_again else what


def _logs_of(aws: AwsConsole, failure: OrderFailure, facts: OrderFacts) -> str:
    task = facts.task
    first = task.created_at if failure.first_at is None else failure.first_at
    last = facts.at if failure.last_at is None else failure.last_at
    return aws.logs(
        failure.agents or ("scheduler",),
        max(task.created_at, first - LOGS_AROUND),
        last + LOGS_AROUND,
        order=task.task_id,
        step=failure.steps[0] if len(failure.steps) == 1 else None,
    )


def _links(aws: AwsConsole, facts: OrderFacts, trace: str | None) -> AwsLinks:
    task, plan = facts.task, facts.plan
    agents = {record.agent for record in task.steps.values()} - {None}
    agents |= {agent for step in plan.steps.values() for agent in step.agents} if plan else set()
    functions = ("submission", "scheduler", *sorted(agent for agent in agents if agent))
    end = facts.at if task.ended_at is None else task.ended_at
    logs = aws.logs(functions, task.created_at, end + LOGS_AROUND, order=task.task_id)
    return AwsLinks(logs, "" if trace is None else aws.trace(trace))


def rows_of_steps(facts: OrderFacts, failed: Sequence[OrderFailure]) -> list[StepRow]:
    """Return the rows of all steps, in the order of the plan."""
    task = facts.task
    # Of an order that goes on, every finished step has its effect: only its end makes that a fact
    # that somebody must know.
    stands = may_stand(task) if task.ended or task.ending is not None else ()
    rows = rows_by_step(facts.history)
    causes = {name: one for one in failed[::-1] for name in one.steps if not one.tried_again}
    found = []
    for one in facts.steps:
        record, cause = one.record, causes.get(one.name)
        row = StepRow(
            one.name,
            record,
            situation_words(task, record),
            agent_words(record, one.step) or one.agent or "",
            attempts_words(one, rows.get(one.name, ()), cause),
            last_error(record)
            or (error_words(cause.error.type, cause.error.message) if cause is not None else ""),
            _result_words(record),
            one.name in stands,
            cause is not None,
        )
        found.append(row)
    return found


def _result_words(record: StepRecord) -> str:
    """Return the result of the step as text, or why it was left out; empty if it has none."""
    left_out = record.left_out
    if left_out is not None:
        whole = "" if left_out.whole is None else f"\n{pretty(left_out.whole)}"
        return f"left out: {left_out.why}{whole}"
    return "" if record.result is None else pretty(record.result)


def attempts_words(one: StepFacts, rows: Sequence[HistoryRow], cause: OrderFailure | None) -> str:
    """Return how many attempts failed, and of how many: `2 of 3`. `rows` are those of the step.

    `1, for good` for a step that failed although it had attempts left.
    """
    count = failed_attempts(one.record, rows)
    if cause is not None and cause.attempts_left:
        return f"{cause.attempts}, for good"
    most = one.most_attempts
    return f"{count} of {most}" if count and most else str(count)


def fold(rows: Sequence[StepRow], *, only_problems: bool = False) -> StepRows:
    """Return the rows to show, those with a problem first, and what is folded away.

    Fan-outs of more than MOST_ITEMS items are folded; of these, the items that are neither done nor
    untouched are shown too, at most MOST_ITEMS of them. If more than MOST_ROWS rows remain, those
    that need no look are folded by their kind, and of the others all after MOST_ROWS.
    """
    problems = sum(row.problem for row in rows)
    if only_problems:
        found = sorted((row for row in rows if row.problem), key=_place)
        kept, rest = found[:MOST_ROWS], found[MOST_ROWS:]
        places = {row.name: place for place, row in enumerate(rows)}
        apart = _apart(_by_kind(rest, "more "), places)
        return StepRows(tuple(kept), apart, problems, len(rows))
    items: dict[str, list[StepRow]] = {}
    for row in rows:
        if item_place(row.name) is not None:
            items.setdefault(step_of(row.name), []).append(row)
    many = {step: found for step, found in items.items() if len(found) > MOST_ITEMS}
    kept_items = {
        row.name
        for found in many.values()
        for row in sorted((one for one in found if one.kind not in QUIET), key=_place)[:MOST_ITEMS]
    }
    shown = [row for row in rows if row.name in kept_items or step_of(row.name) not in many]
    folded = [
        FoldedRows(f"All items of {step}", tuple(found), step) for step, found in many.items()
    ]
    if len(shown) > MOST_ROWS:
        quiet = [row for row in shown if row.kind in QUIET]
        loud = sorted((row for row in shown if row.kind not in QUIET), key=_place)
        shown = loud[:MOST_ROWS]
        folded = [*_by_kind(loud[MOST_ROWS:], "more "), *folded, *_by_kind(quiet)]
    apart = _apart(folded, {row.name: place for place, row in enumerate(rows)})
    return StepRows(tuple(sorted(shown, key=_place)), apart, problems, len(rows))


def rows_from(rows: Sequence[StepRow], start: int) -> StepRows:
    """Return one page of all rows, in the order of the plan, from the place `start` on."""
    problems = sum(row.problem for row in rows)
    return StepRows(tuple(rows[start : start + ON_A_PAGE]), (), problems, len(rows), start)


def _apart(folded: Sequence[FoldedRows], places: Mapping[str, int]) -> tuple[FoldedRows, ...]:
    """Say of what is folded away where it is, if all together it is too much for the page."""
    found, left = list[FoldedRows](), ON_A_PAGE
    for group in folded:
        if len(group.rows) <= left:
            left -= len(group.rows)
            found.append(group)
        else:
            place = places[group.rows[0].name]
            found.append(replace(group, first=place - place % ON_A_PAGE))
    return tuple(found)


def _place(row: StepRow) -> int:
    """Where a row stands: those with a problem first, and all others in the order of the plan."""
    return KINDS.index(row.kind) if row.problem else len(KINDS)


def _by_kind(rows: Sequence[StepRow], more: str = "") -> list[FoldedRows]:
    kinds: dict[str, list[StepRow]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    return [
        FoldedRows(f"{len(kinds[kind])} {more}{kind}", tuple(kinds[kind]))
        for kind in KINDS
        if kind in kinds
    ]


def pretty(value: Json) -> str:
    """Return a value as indented JSON for people, with its keys sorted."""
    return json.dumps(json.loads(canonical_json(value)), indent=2, ensure_ascii=False)

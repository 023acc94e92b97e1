"""The verbs on orders: resubmit, undo, cancel, resolve, extend, run, move and erase."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from roundsman.model import events
from roundsman.model.corrections import Correction
from roundsman.model.events import CommandSource, OperatorEvent
from roundsman.model.json import Json
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.acts.documents.bulk import BulkRunDocument, DryRunDocument
from roundsman_console.acts.documents.order import CommandDocument
from roundsman_console.acts.verb import Argument, FieldKind, Verb, once
from roundsman_console.base.errors import WrongFields
from roundsman_console.base.typed_inputs import (
    read_duration,
    read_input,
    read_json,
    read_object,
    read_removes,
    read_result,
    read_sets,
    read_steps,
)
from roundsman_console.facts.order.effects import may_stand
from roundsman_console.facts.order.step_text import span

OneOrMany: TypeAlias = CommandDocument | DryRunDocument | BulkRunDocument
"""The result of a command for one order; for several, the dry run or the bulk run."""

NOT_ASKED = "0" * 64
"""Stands for the hash of the newest plan, which is asked for before a command is sent."""

OPEN = frozenset(TaskState) - END_STATES
FAILED = frozenset({TaskState.ARCHIVED, TaskState.UNDONE, TaskState.CANCELLED})
BEGIN_ANEW = frozenset({TaskState.UNDONE, TaskState.CANCELLED})
"""The states from which a task does not continue but begins again."""

PastHolds: TypeAlias = Annotated[
    bool,
    Argument(
        "--past-holds",
        "Let the order pass the holds of operators, to see whether a service is well again, and "
        "the limit of its workflow.",
        label="Let it pass the holds of operators, and the limit of its workflow",
        alone="--past-holds tries one order. Release what is held to let several go on.",
    ),
]
"""Whether one order passes the holds that it would wait for; others wait on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderVerb(Verb):
    """A command for the task of one order, or, in a bulk run, of each of several orders."""

    reason = "Reason, stored in the task's history."
    document: ClassVar[object] = OneOrMany
    states: ClassVar[frozenset[TaskState]]
    """The states of tasks for which it is offered. The engine decides whether it is allowed."""
    participle: ClassVar[str]
    """What becomes of an order: `resubmitted`."""
    of_many: ClassVar[bool] = True
    """Whether a bulk run can do it to many orders."""
    names_order: ClassVar[bool] = False
    """Whether a form is confirmed by the id of the order, which may have no task any more."""
    dry_run: ClassVar[str] = ""
    """The help of the option --dry-run for one order; empty if there is none."""
    undoes: ClassVar[bool] = False
    """Whether what stands of an order is to be known before it is asked for."""

    @abstractmethod
    def event(self, asked: CommandSource) -> OperatorEvent:
        """Return the event that the engine decides on."""

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Return whether the verb is offered for the task."""
        return task.state in cls.states

    @classmethod
    def does_in(cls, states: Collection[TaskState]) -> str:
        """Return what the verb does to tasks that are in these states, in sentences.

        Without states, that is what it does to any task.
        """
        del states
        return cls.does()

    @classmethod
    def left_out_in(cls, states: Collection[TaskState]) -> Collection[str]:
        """Return the names of the arguments that no task in these states can take."""
        del states
        return ()

    @classmethod
    def proposed_in(cls, states: Collection[TaskState]) -> Mapping[str, str]:
        """Return what a form proposes for tasks that are in these states."""
        del states
        return {}

    @property
    def named(self) -> tuple[str, ...]:
        """The names of steps in the command, which must be in the plan."""
        return ()

    @property
    def input(self) -> Mapping[str, Json] | None:
        """The whole corrected input of the task; None if the event has the changes, if any."""
        return None

    @property
    def newest_plan(self) -> bool:
        """Whether the task continues under the newest plan of its workflow."""
        return False

    @property
    def past_holds(self) -> bool:
        """Whether the order passes the holds of operators that it would wait for."""
        return False

    def question(self, task: Task) -> str | None:  # noqa: ARG002  # verbs that ask use it
        """Return the question that confirms what cannot be reversed; None asks nothing."""
        return None

    def question_of_many(self, many: str) -> str | None:  # noqa: ARG002  # the same
        """Return the question for a bulk run; `many` is the number of orders, as `12 orders`."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResubmitVerb(OrderVerb):
    """Continue a failed task: try its failed steps, or its failed undo, again under the same keys.

    Example: roundsman resubmit ord-1001 --reason "the carrier is back"

    Example: roundsman resubmit --group f-1a2b3c4d --reason "the carrier is back" --go

    Example: roundsman resubmit ord-1001 --set paymentToken=tok_visa --reason "a new card"

    Example: roundsman resubmit ord-1001 --plan newest --dry-run --reason "the retries are fixed"
    """

    name = "resubmit"
    title = "Resubmit"
    participle = "resubmitted"
    states = FAILED
    dry_run = "Send nothing; show what would change."

    steps: Annotated[
        tuple[str, ...],
        Argument(
            "--step",
            "A failed step; may be repeated. Default: all of them.",
            FieldKind.WORDS,
            label="Only these failed steps",
            read=once,
        ),
    ] = ()
    sets: Annotated[
        Correction,
        Argument(
            "--set",
            "Correct a field of the input, as in lines[0].sku=KB-102; JSON or plain text.",
            FieldKind.LINES,
            "PATH=VALUE",
            label="Correct the input",
            hint="One change a line: lines[0].sku=KB-1",
            read=read_sets,
        ),
    ] = ()
    removes: Annotated[
        Correction,
        Argument(
            "--remove", "Remove a field of the input.", FieldKind.LINES, "PATH", read=read_removes
        ),
    ] = ()
    input: Annotated[
        Mapping[str, Json] | None,
        Argument(
            "--input",
            "The whole corrected input as JSON; - for stdin.",
            FieldKind.BODY,
            "FILE",
            label="The whole input, as JSON",
            hint="Masked values that stay as they are are kept.",
            folded="Edit the whole input",
            read=read_input,
            read_field=read_object,
            alone="--input replaces the whole input, so it works for one order only. For several "
            "orders use --set and --remove.",
        ),
    ] = None
    used: Annotated[bool, Argument("--used", "Also correct what a finished step has used.")] = False
    fresh_key: Annotated[
        bool, Argument("--fresh-key", "Use a new key, after an undo under the old one.")
    ] = False
    again: Annotated[
        bool,
        Argument(
            "--again",
            "Begin an undone or cancelled task again from the start.",
            label="Begin again from the start, each call as a new request",
        ),
    ] = False
    newest_plan: Annotated[
        bool,
        Argument(
            "--plan",
            "newest: continue under the newest definition of the workflow, as deployed. Default: "
            "the task's own.",
            label="Under the newest plan of its workflow",
            word="newest",
        ),
    ] = False
    past_holds: PastHolds = False
    not_done: Annotated[
        tuple[str, ...],
        Argument(
            "--not-done",
            "A failed step that did not happen, as you know. Needs a correction or --fresh-key.",
            FieldKind.WORDS,
            "STEP",
            label="Failed steps that did not happen, as you know",
            read=once,
        ),
    ] = ()

    @classmethod
    def does_in(cls, states: Collection[TaskState]) -> str:
        if states and BEGIN_ANEW.issuperset(states):
            return (
                "Begin again from the start. Each call is made as a new request, so what happened "
                "before would happen again: an order is refused if an effect of it may stand."
            )
        if states and BEGIN_ANEW.isdisjoint(states):
            return "Try the failed steps, or the failed undo, again under the same keys."
        return (
            "Continue a failed order. One that is archived tries its failed steps, or its failed "
            "undo, again under the same keys; one that is undone or cancelled begins again from "
            "the start, each call as a new request, if that is chosen below."
        )

    @classmethod
    def left_out_in(cls, states: Collection[TaskState]) -> Collection[str]:
        if states and BEGIN_ANEW.issuperset(states):
            return ("steps", "used", "fresh_key", "not_done")
        return ("again",) if states and BEGIN_ANEW.isdisjoint(states) else ()

    @classmethod
    def proposed_in(cls, states: Collection[TaskState]) -> Mapping[str, str]:
        return {"again": "yes"} if states and BEGIN_ANEW.issuperset(states) else {}

    def check(self) -> None:
        corrected = self._corrects
        if self.input is not None and (self.sets or self.removes):
            raise WrongFields({"input": "Give either --input, or --set and --remove."})
        if self.used and not corrected:
            raise WrongFields({"used": "--used requires --input, --set or --remove."})
        if self.not_done and not (corrected or self.fresh_key):
            raise WrongFields({"not_done": "--not-done requires a correction or --fresh-key."})
        if self.newest_plan and self.steps:
            why = "--step cannot be combined with --plan: every failed step is tried again."
            raise WrongFields({"steps": why})

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Resubmit(
            asked,
            self.steps,
            self.fresh_key,
            self.again,
            changes=(*self.sets, *self.removes),
            used=self.used,
            not_done=self.not_done,
        )

    @property
    def named(self) -> tuple[str, ...]:
        return (*self.steps, *self.not_done)

    @property
    def _corrects(self) -> bool:
        return bool(self.sets or self.removes) or self.input is not None

    def question(self, task: Task) -> str | None:
        asks = self.question_of_many("it")
        return asks and f"{task.task_id} is {task.state}. {asks}"

    def question_of_many(self, many: str) -> str | None:
        if self.again:
            return f"Begin {many} again from the start, repeating every effect?"
        if self.newest_plan:
            return f"Continue {many} under the newest plan?"
        return f"Continue {many} with the corrected input?" if self._corrects else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoVerb(OrderVerb):
    """Undo all that may have happened, newest first; the task ends Undone.

    A completed order can be taken back, too: until its record is removed after its retention, and
    unless it is past its point of no return. With --steps, only a part of it: the others stand, and
    the task ends Completed again.

    Example: roundsman undo ord-1001 --reason "the customer called"

    Example: roundsman undo ord-1001 --steps "pick[2],charge_rest" --reason "one line is sold out"

    Example: roundsman undo --state Completed --workflow w --older 1h --newer 3h --reason "a bug"
    """

    name = "undo"
    title = "Undo"
    participle = "undone"
    danger = True
    undoes = True
    states = frozenset(TaskState) - {TaskState.UNDONE}

    steps: Annotated[
        tuple[str, ...],
        Argument(
            "--steps",
            "Only these steps of a completed order: a,b. Name also what comes after them.",
            FieldKind.WORDS,
            "STEP,STEP",
            label="Only these steps",
            hint="Names with spaces between them, and also those that come after them.",
            read=read_steps,
            alone="--steps names the steps of one order. Take back the parts one by one.",
        ),
    ] = ()

    @classmethod
    def left_out_in(cls, states: Collection[TaskState]) -> Collection[str]:
        return ("steps",) if states and TaskState.COMPLETED not in states else ()

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.UndoPart(asked, self.steps) if self.steps else events.UndoAsked(asked)

    @property
    def named(self) -> tuple[str, ...]:
        return self.steps

    def question(self, task: Task) -> str | None:
        if self.steps:
            return f"{task.task_id} is {task.state}. Undo {span(self.steps)}, and keep the rest?"
        return f"{_standing(task)}. Undo it?"

    def question_of_many(self, many: str) -> str | None:
        return f"Undo {many}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelVerb(OrderVerb):
    """Stop a task, after undoing what may have happened; it ends Cancelled.

    Example: roundsman cancel ord-1001 --reason "ordered twice"
    """

    name = "cancel"
    title = "Cancel"
    participle = "cancelled"
    danger = True
    undoes = True
    states = OPEN

    keep: Annotated[bool, Argument("--no-undo", "Do not undo what has happened.")] = False

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Cancel(asked, undo=not self.keep)

    def question(self, task: Task) -> str | None:
        asks = "Cancel it and keep that?" if self.keep else "Undo that and cancel the task?"
        return f"{_standing(task)}. {asks}"

    def question_of_many(self, many: str) -> str | None:
        return f"Cancel {many}, and {'keep' if self.keep else 'undo'} what has happened?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveVerb(OrderVerb):
    """Record the outcome of a step, as you found it at the remote service.

    Example: roundsman resolve ord-1001 charge_card --did --result '{"chargeId": "ch_1"}'
    --reason "seen in the acquirer's console"
    """

    name = "resolve"
    title = "Resolve"
    participle = "resolved"
    undoes = True
    states = OPEN | {TaskState.ARCHIVED}

    step: Annotated[
        str,
        Argument(
            help="The order's id, and the step whose outcome you know.",
            kind=FieldKind.STEP,
            label="Step",
            missing="Choose the step whose outcome you know.",
        ),
    ]
    did: Annotated[
        bool,
        Argument(
            "--did",
            "The step happened.",
            FieldKind.CHOICE,
            label="Did it happen?",
            missing="Choose whether the step happened.",
            otherwise=("--did-not", "The step did not happen."),
        ),
    ]
    result: Annotated[
        Json,
        Argument(
            "--result",
            "With --did: the step's result, as JSON or @file.",
            label="Its result, as JSON",
            hint="Only if it happened.",
            read=read_result,
            read_field=read_json,
            alone="--result works for one order only. Resolve the orders one by one.",
        ),
    ] = None
    fresh_key: Annotated[
        bool,
        Argument(
            "--fresh-key",
            "With --did-not: try the step again under a new key.",
            label="Try it again under a new key",
        ),
    ] = False

    def check(self) -> None:
        if self.result is not None and not self.did:
            raise WrongFields({"result": "A step that did not happen has no result."})
        if self.fresh_key and self.did:
            raise WrongFields({"fresh_key": "A step that happened needs no new key."})

    @classmethod
    def fits(cls, task: Task) -> bool:
        known = (
            record.process_state is ProcessState.PROCESSED and not record.awaits_result
            for record in map(task.step, may_stand(task))
        )
        return not all(known)

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Resolve(asked, self.step, self.did, self.result, self.fresh_key)

    @property
    def named(self) -> tuple[str, ...]:
        return (self.step,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendVerb(OrderVerb):
    """Give more time to a task, or to a step that waits for its agent.

    Example: roundsman extend ord-1001 create_shipment --by 10m --reason "the carrier is slow"
    """

    name = "extend"
    title = "Extend"
    participle = "extended"
    states = OPEN

    seconds: Annotated[
        int,
        Argument(
            "--by",
            "Additional time: 90s, 10m, 1h30m, 2d.",
            label="Additional time",
            hint="90s, 10m, 1h30m or 2d",
            proposed="10m",
            read=read_duration,
        ),
    ]
    step: Annotated[
        str | None,
        Argument(
            help="The order's id, and a step at its agent; without a step, the whole task.",
            kind=FieldKind.STEP,
            label="Only this step",
        ),
    ] = None

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Extend(asked, self.seconds, self.step)

    @property
    def named(self) -> tuple[str, ...]:
        return () if self.step is None else (self.step,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerb(OrderVerb):
    """Start a Scheduled task, or the next attempt of a task in Retry, now.

    Example: roundsman run ord-1001 --reason "the acquirer is back"
    """

    name = "run"
    title = "Run now"
    participle = "run now"
    states = frozenset({TaskState.SCHEDULED, TaskState.RETRY})

    past_holds: PastHolds = False

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.RunNow(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerb(OrderVerb):
    """Let an open task go on under the newest plan of its workflow, as deployed.

    Refused if a step that was sent, or has ended, would differ. A failed task goes on under a newer
    plan with `resubmit --plan newest`.

    Example: roundsman move ord-1001 --dry-run --reason "the retries are fixed"

    Example: roundsman move --workflow order_fulfilment --reason "the retries are fixed"
    """

    name = "move"
    title = "Move to the newest plan"
    participle = "moved to the newest plan"
    states = OPEN - {TaskState.UNDOING}
    dry_run = "Send nothing; show what would change."

    @property
    def newest_plan(self) -> bool:
        return True

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Move(asked, NOT_ASKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseVerb(OrderVerb):
    """Remove the contents of an order that has ended, and keep the record that it was.

    Its input, results, messages of errors and reasons are removed for ever. Backups, logs, exports
    and dead letters are not changed.

    Example: roundsman erase ord-1001 --why "request 17"
    """

    name = "erase"
    title = "Erase"
    participle = "erased"
    danger = True
    reason = "Reason, which is kept. Do not write personal data in it."
    reason_options = ("--why", "--reason")
    document = CommandDocument
    of_many = False
    names_order = True
    states = END_STATES
    dry_run = "Send nothing; say whether it is possible."

    @classmethod
    def does_in(cls, states: Collection[TaskState]) -> str:
        del states
        return f"{cls.does()} The reason is kept: do not write personal data in it."

    def event(self, asked: CommandSource) -> OperatorEvent:
        return events.Erase(asked)

    def question(self, task: Task) -> str | None:
        return (
            f"{task.task_id} is {task.state}. Erase its contents? They cannot be brought back, and "
            "it cannot be undone or begun again after that."
        )


def _standing(task: Task) -> str:
    names = may_stand(task)
    effects = f"this may have happened: {span(names)}" if names else "nothing has happened yet"
    return f"{task.task_id} is {task.state}; {effects}"

"""The page of a command: what it is about, its form, what it would do, and its outcome."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from roundsman_console.acts.actor import read_reason
from roundsman_console.acts.changes import InputChange
from roundsman_console.acts.set_aside.edits import DiffLine
from roundsman_console.acts.verb import FieldKind, Form, Item, Verb
from roundsman_console.base.constraints import GROUP_ID
from roundsman_console.base.errors import ConsoleError, WrongFields
from roundsman_console.faces.web.access.session import GO, Session
from roundsman_console.faces.web.result_tables import PageTable
from roundsman_console.inspector import Inspector

A = TypeVar("A")
B = TypeVar("B")

INCIDENT = "incident"
"""The field of a form that was begun on the page of a failure group; its value is the group."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form."""

    name: str
    label: str
    kind: str = "text"
    """A `FieldKind` of argument."""
    hint: str = ""
    folded: str = ""
    """The heading under which the field is folded away; empty if it is not."""
    options: Sequence[str] = ()
    """What may be chosen in a field of the kind `steps`; empty for the order's steps."""
    required: bool = False
    option: str = ""
    """The option of the command line that is the same; empty if there is none."""
    if_empty: str = ""
    """The value that counts if the field is left empty; empty if there is none."""

    @property
    def note(self) -> str:
        """What may be typed, and whether something must be: `0 to 100; 5 if it is left empty`."""
        parts = [self.hint.rstrip(".")] if self.hint else []
        if self.required:
            parts.append("required")
        elif self.if_empty:
            parts.append(f"{self.if_empty} if it is left empty")
        elif "by default" not in self.hint:
            parts.append("optional")
        return "; ".join(parts)


REASON = FormField("reason", "Reason", option="--reason")
"""The field that each form of a command with a reason has first."""


def fields_of(verb: type[Verb]) -> list[FormField]:
    """Return the fields that ask for the arguments of a verb."""
    return [
        FormField(
            one.name,
            one.label,
            one.kind or "",
            one.hint,
            one.folded,
            required=one.required,
            option=one.option,
        )
        for one in verb.arguments()
        if one.label
    ]


def proposed_by(verb: type[Verb]) -> dict[str, str]:
    """Return what is in the fields of a verb before anything is typed."""
    return {one.name: one.proposed for one in verb.arguments() if one.proposed}


CHANGED = "Nothing was sent: the form, or what it is about, has changed since it was shown. "


@dataclass(frozen=True, slots=True)
class StepChange:
    """What a command changes of one step."""

    step: str
    before: str
    after: str
    key: str
    """Under which key the step is tried: `the same key`, or `a new key`."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """A link to what a person may do next."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class WayBackForm:
    """The command that takes back what was done: a form that is ready to be sent."""

    title: str
    command: str
    form: Mapping[str, str]
    """Its fields, with the signature of what they do."""


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A page about a command: its form, what it would do, or what it did."""

    name: str
    title: str
    does: str
    about: str
    """The id of the order or message, or the name of the agent or queue; empty for the stack."""
    key: str
    """The name of the field that says what the command is about: `order`, `agent`. Empty if
    `hidden` says it."""
    back: str
    """The address of the page of the order, agent or messages."""
    fields: Sequence[FormField] = ()
    steps: Sequence[str] = ()
    """The order's steps, for fields that take one."""
    form: Form = field(default_factory=dict)
    """The fields as they were sent."""
    proposed: Form = field(default_factory=dict)
    """What is in fields before anything is typed."""
    sentence: str = ""
    """What was found or done; empty before the form was sent."""
    refused: bool = False
    asks: bool = False
    """Whether the decision is shown, and the same form is to be sent again."""
    done: bool = False
    changes: Sequence[StepChange] = ()
    inputs: Sequence[tuple[str, Sequence[InputChange]]] = ()
    """The corrections of inputs, each with its order."""
    items: Sequence[Item] = ()
    items_are: tuple[str, str] = ("Order", "State")
    """The headings of the names of the items, and of what is said of each."""
    tables: Sequence[PageTable] = ()
    """What a verb acts on, or what came of it."""
    diff: Sequence[DiffLine] = ()
    """What changes in the text of a message."""
    text: str = ""
    """A message that is shown as it is."""
    problems: Sequence[str] = ()
    """Sentences below the first: what is wrong, or what else is to be known."""
    stands: Sequence[str] = ()
    """The steps whose effect may stand now."""
    reason: str = "required"
    """`required`, `optional`, or `none` for a command that stores no reason."""
    reason_label: str = REASON.label
    """The label of the field of the reason; another one if several forms are on the page."""
    shown: str = ""
    """The value of the form's field SHOWN, if a decision is shown."""
    hidden: Mapping[str, str] = field(default_factory=dict)
    """The fields that say what the command is about, if `key` does not."""
    goes_to: str = ""
    """The address of the page that shows the command being carried out; empty if this one does."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with a field, by its name."""
    problem: str = ""
    """Why the form could not be handled, if that is no fault of a field."""
    impossible: bool = False
    """Whether the command cannot apply now; `sentence` says why, and no form is shown."""
    at_once: bool = False
    """Whether the form is carried out without first showing what it would do."""
    danger: bool = False
    """Whether it takes something away that cannot be brought back."""
    next: Sequence[NextStep] = ()
    """What may be done after it was carried out."""
    way_back: WayBackForm | None = None

    @property
    def first_wrong(self) -> str:
        """The name of the first field with an error, as they are shown; empty if there is none."""
        shown = [REASON.name, *(one.name for one in self.fields)]
        return next((name for name in shown if name in self.errors), "")

    def unfolded(self, fields: Sequence[FormField]) -> bool:
        """Whether fields that are folded away are to be seen: one is wrong, or was filled in."""
        return any(
            one.name in self.errors
            or (
                one.kind != FieldKind.BODY
                and self.form.get(one.name, "") not in ("", self.proposed.get(one.name))
            )
            for one in fields
        )

    def labelled(self, sentence: str, name: str = "") -> str:
        """Return a sentence that names options or statements, with the labels of the fields.

        `name` is the field that the sentence is about: it may begin with the label.
        """
        for one in (REASON, *self.fields):
            label = f"\u201c{one.label}\u201d"
            if one.option:
                own = one.label if one.name == name else label
                sentence = re.sub(rf"^{one.option}(?![\w-])", own, sentence)
                sentence = re.sub(rf"(?<![\w-]){one.option}(?![\w-])", label, sentence)
            statement = _statement(one.name)
            sentence = sentence.replace(f"set {statement} to", f"choose {label} to")
            sentence = sentence.replace(statement, label)
        return sentence


@dataclass(frozen=True, slots=True)
class FormCommand:
    """A command in the browser."""

    verb: str
    """The command on the command line, with which it shares its decision: `rejected resend`."""
    show: Callable[[Inspector, Form], CommandPage]
    """Reads an empty form. Raises NotFound if what it is about does not exist."""
    carry_out: Callable[[Inspector, Form, Session], CommandPage]
    """Shows what the command would do; with the field GO, carries it out."""


def page_of(
    verb: type[Verb], about: str, key: str, back: str, given: Form, name: str = ""
) -> CommandPage:
    """Return the page with the form of a verb; `name` is its name in the browser, if another.

    A form that was begun on the page of a failure group leads back there.
    """
    incident = incident_of(given)
    return CommandPage(
        name or verb.name,
        verb.title,
        verb.does(),
        about,
        key,
        f"/groups/{incident}" if incident else back,
        fields_of(verb),
        form={**proposed_by(verb), **given},
        proposed=proposed_by(verb),
        reason=verb.needs_reason,
        hidden={INCIDENT: incident} if incident else {},
        danger=verb.danger,
    )


def incident_of(given: Form) -> str:
    """Return the failure group on whose page the form was begun; empty if there is none."""
    group = given.get(INCIDENT, "")
    return group if GROUP_ID.fullmatch(group) else ""


def reason_of(verb: type[Verb], given: Form) -> str:
    """Return the reason in a form; empty if it may be left out and is. Raises WrongFields."""
    text = given.get(REASON.name, "")
    if verb.needs_reason != "required" and not text.strip():
        return ""
    try:
        return read_reason(text)
    except ConsoleError as error:
        raise WrongFields({REASON.name: str(error)}) from error


def read_both(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Read two parts of a form. Raises WrongFields with the fields that are wrong in either."""
    try:
        found = first()
    except WrongFields as wrong:
        try:
            second()
        except WrongFields as also:
            raise WrongFields({**wrong.reasons, **also.reasons}) from also
        raise
    return found, second()


def _statement(name: str) -> str:
    """Return what the engine calls a statement of a command in its sentences: `notDone`."""
    first, *rest = name.split("_")
    return f"`{first}{''.join(word.capitalize() for word in rest)}`"


def agreed(given: Form, session: Session, version: str) -> bool:
    """Whether the form is to be carried out, and was shown in this state; true once."""
    return GO in given and session.take(given, version)


def asking(
    page: CommandPage, given: Form, session: Session, version: str, would: str
) -> CommandPage:
    """Return the page that says what the form would do, and asks to carry it out."""
    words, shown = not_sent(given, False) + would, session.sign(given, version)
    return replace(page, sentence=words, asks=True, shown=shown)


def sent_page(page: CommandPage, order: str | None, sentence: str) -> CommandPage:
    """Return the page of a message that was sent; it leads to the order, if that is known."""
    about, back = (order, f"/orders/{order}") if order else (page.about, page.back)
    return replace(page, sentence=sentence, done=True, about=about, back=back, problems=())


def not_sent(given: Form, go: bool) -> str:
    """Return CHANGED if the form was to be carried out and is not what was shown, or nothing."""
    return CHANGED if GO in given and not go else ""

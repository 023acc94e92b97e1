"""How a verb is declared: once, for the command line, the forms of the console and the inspector.

A verb is a frozen dataclass. Its docstring is its help, with its examples, and its fields are its
arguments: each is annotated with an `Argument`, which says how it is typed and how a form asks for
it. Nothing else is written for a verb that is listed in `acts.verbs`: its command, its form, its
schema, its line of the help and its place in the reference are made of the class.

An `acts.order.verbs.OrderVerb` is sent to the tasks of orders. A `StackVerb` says itself what it
would do, and does it.
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args, get_type_hints

from roundsman.model import json
from roundsman_console.acts.changes import InputChange
from roundsman_console.base.errors import InvalidArgument, WrongFields
from roundsman_console.base.result import Noun, Result

if TYPE_CHECKING:
    from roundsman_console.aws.stack import DeployedStack

Form = Mapping[str, str]


class FieldKind(StrEnum):
    """What an argument is, and so how it is typed and how a form asks for it."""

    TEXT = "text"
    CHECK = "check"
    """What is true or not: an option without a value, or with the one value `Argument.word`."""
    CHOICE = "choice"
    """Whether it happened: two options, of which one is required."""
    STEP = "steps"
    """A step of the order; on the command line the last word, unless it has an option."""
    WORDS = "words"
    """An option that may be repeated; in a form, words with spaces between them."""
    LINES = "lines"
    """An option that may be repeated; in a form, one value a line."""
    BODY = "body"
    """A whole document."""


_HINTS = {FieldKind.WORDS: "Names with spaces between them.", FieldKind.LINES: "One a line."}


def _as_given(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Argument:
    """How an argument of a verb is typed, and how a form asks for it."""

    option: str = ""
    """The option of the command line; empty for a word that is typed without one."""
    help: str = ""
    kind: FieldKind | None = None
    """None for `CHECK` if the value is true or false, and else `TEXT`."""
    metavar: str | None = None
    """What stands for the value in the help; None for the name of its type."""
    label: str | None = None
    """The label of the field; None for the help. Empty if no field asks for it."""
    hint: str = ""
    proposed: str = ""
    """What is in the field before anything is typed; empty for nothing."""
    folded: str = ""
    """The heading under which the field is folded away; empty if it is not."""
    read: Callable[..., object] = _as_given
    """Returns the value of a text (of `WORDS` and `LINES`: of several), or raises InvalidArgument.
    """
    read_field: Callable[[str], object] | None = None
    """The same for the text of a field, if that is read in another way."""
    missing: str = ""
    """What is wrong with a form that leaves it out, if it is required; empty if `read` says it."""
    alone: str = ""
    """Why it is not possible for several orders; empty if it is."""
    word: str = ""
    """The only value of the option of a `CHECK`."""
    otherwise: tuple[str, str] = ("", "")
    """The second option of a `CHOICE`, and its help."""
    name: str = ""
    """The name of the field of the class, and of the field of the form."""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a person may ask of a stack, with its arguments."""

    name: ClassVar[str]
    """The words of the command: `resubmit`, `bulk pause`."""
    title: ClassVar[str]
    """The heading of its form."""
    reason: ClassVar[str]
    """The help of the option for the reason; empty if the verb stores none."""
    reason_options: ClassVar[tuple[str, ...]] = ("--reason",)
    needs_reason: ClassVar[Literal["required", "optional", "none"]] = "required"
    signed: ClassVar[bool] = False
    """Whether it stores who asks for it, though it stores no reason."""
    document: ClassVar[object]
    """The type of what it prints with --json: of a `StackVerb`, its `Result`."""
    danger: ClassVar[bool] = False
    """Whether it takes something away that cannot be brought back; its button is red."""

    @classmethod
    def stores_name(cls) -> bool:
        """Return whether it stores who asks for it."""
        return cls.signed or cls.needs_reason != "none"

    @classmethod
    def help(cls) -> str:
        """Return the help of the command: what it does, and examples."""
        return inspect.getdoc(cls) or ""

    @classmethod
    def does(cls) -> str:
        """Return what the verb does, in sentences."""
        paragraphs = cls.help().split("\n\n")
        sentences = [one for one in paragraphs if not one.startswith("Example: ")]
        return " ".join(" ".join(sentences).split())

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        """Return the arguments, in the order in which they are declared."""
        # `Json` names itself and `Sequence`, which the module of the verb need not import.
        hints = get_type_hints(cls, localns=vars(json), include_extras=True)
        found = []
        for own in fields(cls):
            [declared] = [one for one in get_args(hints[own.name])[1:] if isinstance(one, Argument)]
            value, *_ = get_args(hints[own.name])
            kind = declared.kind or (FieldKind.CHECK if value is bool else FieldKind.TEXT)
            label = declared.help.removesuffix(".") if declared.label is None else declared.label
            hint = declared.hint or _HINTS.get(kind, "")
            required = own.default is MISSING
            found.append(
                replace(
                    declared, name=own.name, kind=kind, label=label, hint=hint, required=required
                )
            )
        return tuple(found)

    @classmethod
    def read(cls, given: Mapping[str, object], *, many: bool = False) -> Self:
        """Return the verb with arguments that were typed; None for one that was not.

        `many` says whether it is for several orders. Raises WrongFields for those that are wrong,
        and InvalidArgument if they contradict each other.
        """
        return cls._made(given, many, lambda one: one.read)

    @classmethod
    def read_form(cls, form: Form, *, many: bool = False) -> Self:
        """Return the verb with the arguments of a form. Raises as `read` does."""
        given = {one.name: _of_field(one, form.get(one.name, "")) for one in cls.arguments()}
        return cls._made(given, many, lambda one: one.read_field or one.read)

    @classmethod
    def _made(
        cls,
        given: Mapping[str, object],
        many: bool,
        reads: Callable[[Argument], Callable[..., object]],
    ) -> Self:
        values, wrong = {}, {}
        for one in cls.arguments():
            value = given.get(one.name)
            if value is None and one.required:
                if one.missing:
                    wrong[one.name] = one.missing
                    continue
                value = ""
            if value and one.alone and many:
                wrong[one.name] = one.alone
            elif value is not None:
                try:
                    values[one.name] = reads(one)(value)
                except InvalidArgument as error:
                    wrong[one.name] = str(error)
        if wrong:
            raise WrongFields(wrong)
        make: Callable[..., Self] = cls
        made = make(**values)
        made.check()
        return made

    def check(self) -> None:
        """Raise InvalidArgument if the arguments contradict each other."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for a verb, why, and how long they wait for its outcome."""

    by: str
    reason: str
    """Each is empty if the verb stores none."""
    wait: float
    """In seconds; 0 to send only."""


Progress = Callable[[str], None]
"""Is told how far something is, in words."""


def no_progress(_words: str) -> None:
    """Tell nobody how far something is."""


class Confirmed(StrEnum):
    """How a person at a terminal agrees to a verb."""

    NOT = "it is not asked"
    BY_YES = "by yes or --yes"
    BY_STACK = "by the name of the stack"
    BY_GO = "by --go, without which it is only shown, and by yes or --yes"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verb is about, as a form of it begins."""

    about: str
    """What people call it: `payment`, `the orders of order_fulfilment`."""
    given: Form = field(default_factory=dict)
    """The arguments that say so, which no field asks for."""
    left_out: Collection[str] = ()
    """The names of the other arguments that do not apply to it."""
    does: str = ""
    """What the verb does to it, in sentences; empty for what the verb does to any."""
    notes: Sequence[str] = ()
    """What else is to be known of it."""
    text: str = ""
    """A message, as it is."""
    impossible: str = ""
    """Why the verb cannot apply to it now; empty if it can."""


@dataclass(frozen=True, slots=True)
class Item:
    """One of several things that a verb would act on, and what would come of it."""

    name: str
    what: str
    verdict: str
    why: str
    goes: bool
    """Whether the verb acts on it."""


def _nothing_held() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Preview:
    """What a verb would do, as it is now. It is to be closed."""

    sentence: str
    go: Callable[[Asked], Result]
    """Does it. May raise Interrupted, with a Result."""
    version: str = ""
    """The state that was looked at: if it is another one by then, what is shown is shown again."""
    question: str = ""
    """What is asked at the terminal before it is done, if the verb is confirmed; empty if it would
    change nothing."""
    found: Result | None = None
    """What is shown before it is done; of a verb that is confirmed by --go, all that is done
    without it."""
    items: Sequence[Item] = ()
    items_are: tuple[str, str] = ("Order", "State")
    """The headings of the names of the items, and of what is said of each."""
    """What it would act on."""
    inputs: Sequence[tuple[str, Sequence[InputChange]]] = ()
    """The corrections of inputs, each with its order."""
    blocked: str = ""
    """Why it cannot be done now, though there is something to do; empty if it can."""
    command: str = ""
    """The command that does it, of a verb that is confirmed by --go."""
    notes: Sequence[str] = ()
    """What else is to be known before it is done, in lines."""
    subject: Subject | None = None
    """What it is about, if that was read; None for what `StackVerb.subject` says."""
    goes_on: Callable[[Result, Progress], Iterator[Result]] | None = None
    """Does the rest, which may take minutes; yields what came of each part of it."""
    left: str = ""
    """What becomes of the rest if it is not done here."""
    close: Callable[[], None] = _nothing_held
    """Gives back what is held until it is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackVerb(Verb):
    """A verb of which command and form are made: it says what it would do, and does it."""

    noun: ClassVar[Noun] = Noun.STACK
    confirmed: ClassVar[Confirmed] = Confirmed.NOT
    waits: ClassVar[bool] = False
    """Whether the command may wait for the outcome."""
    of_application: ClassVar[bool] = False
    """Whether it is to know the workflows of the application in this folder."""
    at_once: ClassVar[bool] = False
    """Whether a form does it without first showing what it would do: it changes nothing that is
    there, and done twice it is as if it was done once."""
    json_help: ClassVar[str] = "Print one JSON object."

    @classmethod
    def subject(cls, stack: "DeployedStack", given: Form) -> Subject:
        """Return what the verb is about, by the arguments in a form or an address.

        Raises NotFound if there is no such thing.
        """
        del given
        return Subject(stack.name, {"stack": stack.name})

    searches: ClassVar[bool] = False
    """Whether it may take minutes to find what it would do."""

    @abstractmethod
    def preview(self, stack: "DeployedStack") -> Preview | Result:
        """Return what the verb would do; a Result if it is refused, or there is nothing to do.

        Raises NotPossible if it does not apply now, whatever the other arguments are.
        """

    def search(self, stack: "DeployedStack", progress: Progress) -> Preview | Result:
        """Return the preview; a verb that `searches` tells `progress` how far it is."""
        del progress
        return self.preview(stack)


def _of_field(one: Argument, text: str) -> object:
    """Return what a person gave in a field of a form; None if it is left empty."""
    match one.kind:
        case FieldKind.CHECK:
            return text == "yes"
        case FieldKind.CHOICE:
            return {"yes": True, "no": False}.get(text)
        case FieldKind.WORDS:
            return text.split()
        case FieldKind.LINES:
            return [line for line in text.splitlines() if line.strip()]
        case _:
            return text.strip() or None


def once(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in their order, each once."""
    return tuple(dict.fromkeys(names))

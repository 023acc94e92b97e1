"""How a verb is declared: once, for the command line, the forms of the console and the inspector.

A verb is a frozen dataclass. Its docstring is its help, with its examples, and its fields are its
arguments: each is annotated with an `Argument`, which says how it is typed and how a form asks for
it. `faces.cli.verb_options` makes a command of the class, the module of its noun in
`faces.web.forms` a form, and a method of `Inspector` makes an instance of it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from typing import ClassVar, Literal, Self, get_args, get_type_hints

from roundsman_console.base.errors import InvalidArgument, WrongFields

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
    document: ClassVar[object]
    """The type of what it prints with --json."""
    danger: ClassVar[bool] = False
    """Whether it takes something away that cannot be brought back; its button is red."""

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
        hints = get_type_hints(cls, include_extras=True)
        found = []
        for field in fields(cls):
            [declared] = [
                one for one in get_args(hints[field.name])[1:] if isinstance(one, Argument)
            ]
            value, *_ = get_args(hints[field.name])
            kind = declared.kind or (FieldKind.CHECK if value is bool else FieldKind.TEXT)
            label = declared.help.removesuffix(".") if declared.label is None else declared.label
            hint = declared.hint or _HINTS.get(kind, "")
            required = field.default is MISSING
            found.append(
                replace(
                    declared, name=field.name, kind=kind, label=label, hint=hint, required=required
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

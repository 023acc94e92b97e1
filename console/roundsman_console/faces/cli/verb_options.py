"""Commands of the command line, made of the verbs that the inspector declares."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Concatenate, ParamSpec, TypeAlias, TypeVar

import typer

from roundsman_console.acts.verb import Argument, FieldKind, Verb
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.cli.errors import sentences

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound=Verb)

KEYWORD = inspect.Parameter.KEYWORD_ONLY

UnaskedYes: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Accepted in scripts; this command asks nothing.")
]


def command_of(verb: type[V]) -> Callable[[Callable[Concatenate[V, P], None]], Callable[..., None]]:
    """Make the command of a verb of a function, whose first parameter is the verb as it was typed.

    The arguments of the verb come before the function's other parameters, of which `reason` is
    declared by the verb. A wrong one is reported before the function is called. Each takes --yes,
    so that a script need not know which verbs ask.
    """

    def decorate(function: Callable[Concatenate[V, P], None]) -> Callable[..., None]:
        _, *others = inspect.signature(function, eval_str=True).parameters.values()
        names = {one.name for one in others}
        if "yes" not in names:
            others.append(parameter("yes", UnaskedYes, False))
        others = [reason_of(verb) if one.name == "reason" else one for one in others]
        call: Callable[..., None] = function

        def command(**typed: object) -> None:
            with sentences():
                asked = verb.read(as_typed(verb, typed))
            call(asked, **{name: typed[name] for name in names})

        return command_with(command, verb.help(), [*parameters_of(verb), *others])

    return decorate


def command_with(
    command: Callable[..., R], words: str | None, parameters: Sequence[inspect.Parameter]
) -> Callable[..., R]:
    """Give a function this help and these parameters, as typer reads them."""
    keywords = [one.replace(kind=KEYWORD) for one in parameters]
    command.__doc__ = words
    command.__dict__["__signature__"] = inspect.Signature(keywords)
    command.__annotations__ = {one.name: one.annotation for one in keywords}
    return command


def reason_of(verb: type[Verb]) -> inspect.Parameter:
    """Return the option for the reason of a verb."""
    found = Annotated[str, typer.Option(*verb.reason_options, help=verb.reason)]
    default = "" if verb.needs_reason == "optional" else inspect.Parameter.empty
    return parameter("reason", found, default)


def parameters_of(verb: type[Verb]) -> Iterator[inspect.Parameter]:
    """Yield the arguments of a verb, as typer reads them, but for a word that follows orders."""
    for one in verb.arguments():
        match one.kind:
            case FieldKind.CHOICE:
                other, words = one.otherwise
                yield flag(one.name, one.option, one.help)
                yield flag(_second(one), other, words)
            case FieldKind.CHECK if not one.word:
                yield flag(one.name, one.option, one.help)
            case FieldKind.WORDS | FieldKind.LINES:
                option = typer.Option(one.option, metavar=one.metavar, help=one.help)
                yield parameter(one.name, Annotated[list[str] | None, option], None)
            case FieldKind.STEP if not one.option:
                pass
            case _:
                yield _text(one)


def as_typed(verb: type[Verb], typed: Mapping[str, object]) -> dict[str, object]:
    """Return what was typed for each argument of the verb, None for those that were not.

    Raises ConsoleError for both options of a choice, and for neither.
    """
    given = {one.name: typed.get(one.name) for one in verb.arguments()}
    for one in verb.arguments():
        if one.kind is FieldKind.CHOICE and given[one.name] == typed[_second(one)]:
            raise ConsoleError(f"Give either {one.option} or {one.otherwise[0]}.", USAGE)
        if one.word and given[one.name] is not None:
            if given[one.name] != one.word:
                raise ConsoleError(
                    f"{one.option} must be {one.word}. Leave it out for the task's own plan.", USAGE
                )
            given[one.name] = True
    return given


def _second(choice: Argument) -> str:
    """The parameter of the second option of a choice."""
    return f"not_{choice.name}"


def flag(name: str, option: str, words: str) -> inspect.Parameter:
    """Return an option without a value, as typer reads it."""
    return parameter(name, Annotated[bool, typer.Option(option, help=words)], False)


def _text(one: Argument) -> inspect.Parameter:
    found = (
        typer.Option(one.option, metavar=one.metavar, help=one.help)
        if one.option
        else typer.Argument(metavar=one.metavar, help=one.help)
    )
    if one.required:
        return parameter(one.name, Annotated[str, found], inspect.Parameter.empty)
    return parameter(one.name, Annotated[str | None, found], None)


def parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    """Return a parameter of a command, as typer reads it."""
    return inspect.Parameter(name, KEYWORD, annotation=annotation, default=default)

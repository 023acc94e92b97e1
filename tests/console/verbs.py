"""The verbs of the command line, found in the app itself, so that a new one is tested unasked."""

import re
import shlex
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

from typer.core import TyperCommand, TyperGroup

from roundsman_console.main import loaded


def _walk(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from _walk(inner, (*words, name))
    elif isinstance(command, TyperCommand):
        yield " ".join(words), command


VERBS = dict(_walk(loaded(), ()))
"""Every verb with its command: `show`, `local up`."""

STACK_VERBS = sorted(
    verb
    for verb, command in VERBS.items()
    if "--stack" in {name for parameter in command.params for name in parameter.opts}
    and not verb.startswith("local ")
    # The first asks a stack for little, and goes by its own counts without one; the other serves
    # pages until it is stopped, and has its tests in tests/web.
    and verb not in ("cost", "ui")
)
"""Those that act on, or look at, a deployed stack."""

_EXAMPLE = re.compile(r"Example: (.+?)(?:\n\n|\Z)", re.DOTALL)


def examples(verb: str) -> list[str]:
    """The examples in the verb's help, each as one line to type."""
    return [" ".join(found.split()) for found in _EXAMPLE.findall(VERBS[verb].help or "")]


def typed_example(verb: str) -> list[str]:
    """The verb's first example as its words, once and unasked."""
    words = verb.split()
    rest = shlex.split(examples(verb)[0])[1 + len(words) :]
    yes = ["--yes"] if "--yes" in options_of(verb) and not {"--yes", "-y"} & set(rest) else []
    once = ["--times", "1"] if "--times" in options_of(verb) else []
    whole = [_WHOLE.get(word, word) for word in rest]
    return [*words, *whole, *yes, *once]


# What an example does not spell out.
_WHOLE = {
    "events/first.json": str(Path(__file__).resolve().parents[2] / "events" / "good.json"),
    "eyJhZ2Vu...": urlsafe_b64encode(
        b'{"taskId":"ord-1001","step":"charge_card","operation":"perform","lock":"a-1.1",'
        b'"key":"ord-1001/charge_card/perform","agent":"payment"}'
    ).decode(),
}


def options_of(verb: str) -> set[str]:
    """What options the verb has, each under all its names."""
    return {name for parameter in VERBS[verb].params for name in parameter.opts}


def split_verb(typed: Sequence[str]) -> tuple[str, list[str]]:
    """The verb that is typed, of one word or two, and what follows it."""
    for count in (2, 1):
        verb = " ".join(typed[:count])
        if verb in VERBS:
            return verb, list(typed[count:])
    raise AssertionError(f"no verb begins {typed[:2]}")


def schema_of(verb: str) -> str:
    """The name of the schema of what the verb prints as JSON."""
    return verb.replace(" ", "-")

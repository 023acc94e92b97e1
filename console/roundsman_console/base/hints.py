"""The next commands that are printed: they name the stack that was given to this command.

A person who typed `--stack shop`, or set ROUNDSMAN_STACK, copies the next command and means the
same stack, also in another terminal.
"""

import json
import re
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import cache

from roundsman_console.base.command_table import ListedCommand, command_table
from roundsman_console.base.result import document_of
from roundsman_console.base.sanitize import inert

_stack: ContextVar[str | None] = ContextVar("stack", default=None)

HINT_KEYS = ("command", "do", "goAhead", "next", "resume", "sentence")
"""The fields of documents that have commands, or sentences with commands."""

_QUOTED = r"""(?<!\S)'[^']*'(?:"'"'[^']*')*"""  # a word as `shlex.quote` writes it
_ARGUMENTS = rf"(?>(?:{_QUOTED}|(?! -- | --stack (?!-)).)*)"  # up to the option, or to all ids


@cache
def _pattern(commands: tuple[ListedCommand, ...]) -> re.Pattern[str]:
    """Return what matches a command that does not name its stack, though it could."""
    names = (name for one in commands for name in one.with_stack)
    longest_first = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"{_QUOTED}|\b(?P<command>roundsman (?:{longest_first})\b)(?!{_ARGUMENTS} --stack (?!-))"
    )


def remember_stack(value: str | None) -> str | None:
    """Keep the value of --stack for the hints of this command; it is the option's callback."""
    _stack.set(value)
    return value


def hint(text: str) -> str:
    """Return a text that is inert, and whose commands name the stack that was given, if any."""
    return _with_stack(inert(text))


_OPTIONS: Mapping[str, str] = {
    "set `used`": "add --used",
    "set `again`": "add --again",
    "name it in `notDone`": "add --not-done and its name",
    "`notDone` needs a fresh key": "--not-done needs --fresh-key",
    "`again`": "--again",
}
"""What the engine calls a statement of a command, and the option that makes it."""


def option_words(sentence: str) -> str:
    """Return a refusal of the engine with the options of the command line."""
    for words, option in _OPTIONS.items():
        sentence = sentence.replace(words, option)
    return sentence


def hinted_json(document: object) -> str:
    """Return a document as JSON; the commands in it name the stack that was given, if any."""
    return json.dumps(_hinted(document))


def _with_stack(text: str) -> str:
    stack = _stack.get()
    if stack is None:
        return text
    option = f" --stack {shlex.quote(inert(stack))}"
    pattern = _pattern(command_table())
    return pattern.sub(lambda found: found[0] + option if found["command"] else found[0], text)


def _hinted(value: object, key: str = "") -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _hinted(document_of(value), key)
    if isinstance(value, dict):
        return {name: _hinted(each, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hinted(each, key) for each in value]
    return _with_stack(value) if isinstance(value, str) and key in HINT_KEYS else value

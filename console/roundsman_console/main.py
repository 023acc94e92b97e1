"""`roundsman`: the command-line application. A command is imported when it is used.

An import of all commands takes half a second of processor time, which `roundsman --help` and the
completion of a word in a shell would have to wait for.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from roundsman_console.base.command_table import ListedCommand
from roundsman_console.commands import REPAIR, all_commands

_PYOPENSSL = "urllib3.contrib.pyopenssl"
_MAKER = "roundsman_console.faces.cli.verb_commands"
"""The module that makes a command of a verb."""


@contextmanager
def _fast_import(module: str) -> Iterator[None]:
    """Make the first import of a command's module take a quarter less processor time.

    The objects that it creates stay until the process ends. While their number grows, the garbage
    collector would traverse all of them again and again, so it is off, and ignores them afterwards.

    botocore tries to import pyOpenSSL, which the SAM CLI installs, and then uses the standard
    library's SSL nevertheless. It uses the same if the import fails, so it fails at once: None in
    sys.modules means that there is no such module.
    """
    if module in sys.modules or not gc.isenabled():
        yield
        return
    without_pyopenssl = _PYOPENSSL not in sys.modules
    if without_pyopenssl:
        sys.modules[_PYOPENSSL] = cast("ModuleType", None)
    gc.disable()
    try:
        yield
    finally:
        if without_pyopenssl:
            del sys.modules[_PYOPENSSL]
        gc.freeze()
        gc.enable()


class LazyCommand(TyperCommand):
    """A command that is imported when it is used."""

    def __init__(self, listed: ListedCommand) -> None:
        super().__init__(listed.name, help=listed.summary, rich_help_panel=listed.heading)
        self.target = listed.target

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command."""
        if not self.target:
            return _made(str(self.name)) or self
        module, _, attribute = self.target.partition(":")
        with _fast_import(module):
            found = getattr(import_module(module), attribute or f"{self.name}_command")
        return get_group(found) if isinstance(found, typer.Typer) else _single(self.name, found)

    # Typer keeps the types of these arguments private, and they are only passed on.
    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Return the context of the imported command, which parses the arguments and is invoked."""
        return self.load().make_context(*args, **extra)


def _single(name: str | None, command: Callable[..., None]) -> TyperCommand:
    single = typer.Typer(add_completion=False)
    single.command(name, rich_help_panel=REPAIR)(command)
    return cast("TyperCommand", get_command(single))


def _made(name: str) -> TyperCommand | None:
    """Return the command that is made of the verb with this name; None if there is none."""
    with _fast_import(_MAKER):
        command = import_module(_MAKER).command_named(name)
    return None if command is None else _single(name, command)


def lazy_commands() -> list[LazyCommand]:
    """Return the commands that are listed, in the order of the help."""
    return [LazyCommand(listed) for listed in all_commands()]


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - they are passed on
        super().__init__(**settings)
        self.commands = {str(command.name): command for command in lazy_commands()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - as typer's own click
        """Return the command; one that is not listed is made of its verb, if there is one."""
        return super().get_command(ctx, cmd_name) or _made(cmd_name)


def loaded() -> TyperGroup:
    """Return the group with every command imported: what documentation and tests walk through."""
    group = get_group(app)
    group.commands = {str(command.name): command.load() for command in lazy_commands()}
    for kind in import_module("roundsman_console.acts.verbs").VERBS:
        command = None if kind.name in group.commands else _made(kind.name)
        if command is not None and " " not in kind.name:
            group.commands[kind.name] = command
    return group


def _print_version(asked: bool) -> None:
    if asked:
        from roundsman_console.base.release import release

        print(f"roundsman {release()}")
        raise typer.Exit


app = typer.Typer(
    name="roundsman",
    cls=CommandGroup,
    help="Multi-step tasks on AWS that complete, or are undone, as a whole.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables contain order data
)


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Multi-step tasks on AWS that complete, or are undone, as a whole."""

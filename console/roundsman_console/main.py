"""`roundsman`: the command-line application. A command is imported when it is used.

An import of all commands takes half a second of processor time, which `roundsman --help` and the
completion of a word in a shell would have to wait for.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from roundsman_console.commands import ListedCommand, all_commands

_PYOPENSSL = "urllib3.contrib.pyopenssl"


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
        module, _, attribute = self.target.partition(":")
        with _fast_import(module):
            found = getattr(import_module(module), attribute or f"{self.name}_command")
        if isinstance(found, typer.Typer):
            return get_group(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(found)
        return cast("TyperCommand", get_command(single))

    # Typer keeps the types of these arguments private, and they are only passed on.
    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Return the context of the imported command, which parses the arguments and is invoked."""
        return self.load().make_context(*args, **extra)


COMMANDS: Final = tuple(LazyCommand(listed) for listed in all_commands())


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - they are passed on
        super().__init__(**settings)
        self.commands = {str(command.name): command for command in COMMANDS}


def loaded() -> TyperGroup:
    """Return the group with every command imported: what documentation and tests walk through."""
    group = get_group(app)
    group.commands = {str(command.name): command.load() for command in COMMANDS}
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

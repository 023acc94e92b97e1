"""Makes the table of the commands that operate a stack: of their modules, and of declared verbs."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from roundsman_console.acts import verbs
from roundsman_console.base.command_table import TABLE, ListedCommand, forget, table_text
from roundsman_console.commands import ORDER, REPAIR
from roundsman_console.faces import commands
from roundsman_console.main import LazyCommand


def text() -> str:
    """Return the text of `roundsman_console.base.command_table.TABLE`.

    Raises ValueError for a command that is neither a verb nor in `roundsman_console.commands`.
    """
    targets = dict(_modules())
    of_verbs = dict.fromkeys(one.name.partition(" ")[0] for one in verbs.VERBS)
    headings = {name: heading for heading, names in ORDER.items() for name in names}
    strange = targets.keys() - of_verbs.keys() - headings.keys()
    if strange:
        raise ValueError(f"no heading in the help for {strange}: see roundsman_console.commands")
    every = {name: headings.get(name, REPAIR) for name in (*headings, *of_verbs)}
    return table_text(_listed(one, every[one], targets.get(one, "")) for one in every)


def write() -> None:
    """Write the table, if it is another one."""
    found = text()
    if not TABLE.is_file() or TABLE.read_text(encoding="utf-8") != found:
        TABLE.write_text(found, encoding="utf-8")
        forget()
        print(f"wrote {TABLE.name}")


def _modules() -> Iterator[tuple[str, str]]:
    """Yield the commands that have a module: the groups in it, or else the function of its name."""
    for found in iter_modules(commands.__path__):
        name = f"{commands.__name__}.{found.name}"
        attributes = vars(import_module(name))
        groups = [one for one in attributes if one.endswith("_app")]
        for one in groups or [f"{found.name}_command"]:
            yield one.rpartition("_")[0], f"{name}:{one}"


def _listed(name: str, heading: str, target: str) -> ListedCommand:
    command = LazyCommand(ListedCommand(heading, name, target, "")).load()
    first = " ".join((command.help or "").split("\n\n")[0].split())
    summary = first.split(" Example: ")[0]
    return ListedCommand(heading, name, target, summary, tuple(_with_stack(command, name)))


def _with_stack(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401  # typer's own click
    if any("--stack" in one.opts for one in command.params):
        yield name
    for word, inner in getattr(command, "commands", {}).items():
        yield from _with_stack(inner, f"{name} {word}")

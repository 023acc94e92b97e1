"""Generates blocks of the reference pages, and the table of commands, from the code.

`python -m tools.reference` writes each block between its markers. With `--check` it writes nothing
and fails if a page is out of date. The blocks are the commands (from the definition of the command
line), the template's parameters and outputs, the rights in the stacks, the state diagrams (from the
transition tables) and the fields of messages and records (from their field tables).
"""

import argparse
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman_console.base.command_table import TABLE
from roundsman_console.facts.orders.filters import FILTERS, filters_for
from roundsman_console.main import loaded
from roundsman_dev.template import Document, Json, mapping_of, part
from tools import command_table, field_pages, state_diagram, template_rights

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TEMPLATE = ROOT / "template.yaml"
END = "<!-- end of generated -->"


def begin(block: str) -> str:
    """Return the marker line before a generated block."""
    return f"<!-- generated: {block}; python -m tools.reference writes it -->"


# --- the command line --------------------------------------------------------------------------


MANY = 5
"""An argument or option that at least this many commands have, with the same meaning, is described
once."""

BESIDE = {one.option(command=True) for one in FILTERS.values() if one.name_in_commands}
RUN = {"--go", "--canary", "--canary-wait", "--rate", "--at-once", "--stop-at", "--anyway"}
SETS = {
    "the *filter*": {
        one.option() for one in filters_for(command=True).values() if not one.name_in_commands
    },
    "the options of a *bulk run*": BESIDE | RUN,
}
"""Options that many commands have together, by what the page calls them."""


def commands() -> str:
    """Return the block with every command, its arguments and its options."""
    found = dict(_leaves(loaded(), "roundsman"))
    takers: dict[str, list[str]] = {}
    for name, command in found.items():
        for one in (*_arguments(command), *_options(command)):
            takers.setdefault(_item(one), []).append(name)
    shared = [item for item, names in takers.items() if len(names) >= MANY]
    in_sets = set[str]().union(*SETS.values())
    lines = ["### Of many commands", "", *(one for one in shared if _name(one) not in in_sets)]
    for title, options in SETS.items():
        items = [one for one in shared if _name(one) in options]
        lines += ["", f"{title[0].upper()}{title[1:]}:", "", *items]
    for name, command in found.items():
        lines += ["", f"### {name}", "", *_command(name, command, shared)]
    return "\n".join(lines)


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # typer's own click
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield name, command
    for word, each in inner.items():
        yield from _leaves(each, f"{name} {word}")


def _is_option(parameter: Any) -> bool:  # noqa: ANN401  # typer's own click
    return bool(parameter.opts[0].startswith("-"))


def _arguments(command: Any) -> list[Any]:  # noqa: ANN401  # typer's own click
    return [one for one in command.params if not _is_option(one)]


def _options(command: Any) -> list[Any]:  # noqa: ANN401  # typer's own click
    found = [one for one in command.params if _is_option(one) and not one.hidden]
    return [one for one in found if one.name not in ("install_completion", "show_completion")]


def _command(name: str, command: Any, shared: Container[str]) -> list[str]:  # noqa: ANN401
    words, examples = _help(command.help or "")
    arguments, options = _arguments(command), _options(command)
    typed = " ".join([name, *map(_metavar, arguments)])
    usage = f"{typed} [OPTIONS]" if options else typed
    lines = [words, "", "```", *(examples or [usage]), "```", ""]
    own = [item for one in (*arguments, *options) if (item := _item(one)) not in shared]
    lines += [*own, ""] if own else []
    also = [_name(item) for one in options if (item := _item(one)) in shared]
    names = [f"`{one}`" for one in also if not _set_of(one, also)]
    names += [one for one, its in SETS.items() if its <= set(also)]
    return [*lines, f"Also: {', '.join(names)}."] if names else lines[:-1]


def _item(parameter: Any) -> str:  # noqa: ANN401  # typer's own click
    if not _is_option(parameter):
        return f"- `{_metavar(parameter)}`: {_cell(parameter.help or '')}"
    default = _default(parameter)
    return f"- {_option(parameter)}{default and f' ({default})'}: {_cell(parameter.help or '')}"


def _name(item: str) -> str:
    """Return the first name of an option, from its line."""
    return item.split("`")[1]


def _set_of(option: str, options: Collection[str]) -> str:
    """Return the name of the set to which an option belongs, if all of it is among the options."""
    sets = (name for name, its in SETS.items() if option in its and its <= set(options))
    return next(sets, "")


def _help(text: str) -> tuple[str, list[str]]:
    """Return a command's help without its examples, and the examples."""
    words, examples = list[str](), list[str]()
    for paragraph in text.split("\n\n"):
        sentence, *shown = " ".join(paragraph.split()).split("Example: ")
        words.append(sentence.strip())
        examples += [one.strip() for one in shown]
    return "\n\n".join(filter(None, words)), examples


def _metavar(argument: Any) -> str:  # noqa: ANN401  # typer's own click
    if argument.metavar:
        return str(argument.metavar)
    name = str(argument.name).upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:  # noqa: ANN401  # typer's own click
    names = ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
    return names if option.is_flag or not option.metavar else f"{names} `{option.metavar}`"


def _default(option: Any) -> str:  # noqa: ANN401  # typer's own click
    if option.required:
        return "*required*"
    value = option.default
    if value is None or value is False or value == [] or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- the template ------------------------------------------------------------------------------


ENGINE = "stacks/engine.yaml"
TEMPLATES = (
    ("The application", "template.yaml", "a parameter of the stack"),
    ("The engine", ENGINE, "a parameter of the block `Engine`"),
    ("An agent", "stacks/agent.yaml", "a parameter of the agent's block"),
    ("A recurring order", "stacks/schedule.yaml", "a parameter of its block"),
)


LONG_VALUES = 40
"""Characters from which values that are those of the row above are not repeated."""


def parameters() -> str:
    """Return the block with the parameters of each template: default, values and meaning.

    What another template passes on to the engine, or has as it, is described at the engine.
    """
    of_engine = _rows(ENGINE).values()
    lines: list[str] = []
    for title, file, where in TEMPLATES:
        rows = _rows(file)
        shared: Collection[str] = of_engine if file != ENGINE else ()
        own = [row for row in rows.values() if row not in shared]
        lines += [f"### {title}", "", f"`{file}`; each is {where}.", ""]
        lines += [
            "| parameter | default | values | meaning |",
            "| --- | --- | --- | --- |",
            *own,
            "",
        ]
        if also := [f"`{name}`" for name, row in rows.items() if row in shared]:
            lines += [f"Also, as of the engine: {', '.join(also)}.", ""]
    return "\n".join(lines).rstrip()


def _rows(file: str) -> dict[str, str]:
    rows, before = dict[str, str](), ""
    for name, one in part(_document(file), "Parameters").items():
        parameter = mapping_of(one)
        default = "*asked*" if "Default" not in parameter else _shown(parameter["Default"])
        values, meaning = _values(parameter), _cell(str(parameter["Description"]))
        shown = "as above" if values == before and len(values) >= LONG_VALUES else values
        rows[name] = f"| `{name}` | {default} | {shown} | {meaning} |"
        before = values
    return rows


def _document(file: str) -> Document:
    return mapping_of(yaml_parse((ROOT / file).read_text(encoding="utf-8")))


def _shown(value: Json) -> str:
    return _cell(str(value)) if value != "" else "*none*"


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _values(parameter: Document) -> str:
    match parameter:
        case {"AllowedValues": list(allowed)}:
            return ", ".join(map(str, allowed))
        case {"MinValue": low, "MaxValue": high}:
            return f"{low} to {high}"
        case _:
            text = str(parameter.get("ConstraintDescription", ""))
            return _cell(text.removeprefix("must be "))


def outputs() -> str:
    """Return the block with the outputs of the stack."""
    rows = ["| output | meaning |", "| --- | --- |"]
    of_engine = part(_document("stacks/engine.yaml"), "Outputs")
    for name in part(_document("template.yaml"), "Outputs"):
        if name in of_engine:
            meaning = _cell(str(mapping_of(of_engine[name])["Description"]))
        elif name == "EngineSettings":
            meaning = "The settings that operators' tools need to know"
        else:
            meaning = "The agent's name, function, queues and memory, for operators' tools"
        rows.append(f"| `{name}` | {meaning} |")
    return "\n".join(rows)


def _of_stacks(table: Callable[[Document, Document], str]) -> Callable[[], str]:
    """Return the function that writes a table of the templates of the engine and of an agent."""
    return lambda: table(_document("stacks/engine.yaml"), _document("stacks/agent.yaml"))


# --- the pages ---------------------------------------------------------------------------------

BLOCKS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "commands": ("reference/cli.md", commands),
    "parameters": ("reference/parameters.md", parameters),
    "outputs": ("reference/parameters.md", outputs),
    "senders": ("explanation/threat-model.md", _of_stacks(template_rights.senders)),
    "defaults": ("explanation/threat-model.md", _of_stacks(template_rights.defaults)),
    "rights of roles": ("explanation/threat-model.md", _of_stacks(template_rights.rights_of_roles)),
    "rights of people": (
        "explanation/threat-model.md",
        _of_stacks(template_rights.rights_of_people),
    ),
    "state diagrams": ("reference/states.md", state_diagram.diagrams),
    "moves of a step": ("reference/states.md", state_diagram.moves_table),
    "order": ("reference/records.md", field_pages.order),
    "task": ("reference/records.md", field_pages.task),
    "step": ("reference/records.md", field_pages.step),
    "history": ("reference/records.md", field_pages.history),
}
"""The generated blocks by name: the page in docs/ and the function that generates the block."""


def written(page: str, block: str, text: str) -> str:
    """Return the page with `text` as the content of this block.

    Raises ValueError if the page does not contain each marker of the block exactly once.
    """
    before, marker, rest = page.partition(begin(block))
    _, end, after = rest.partition(END)
    if not (marker and end) or marker in rest:
        raise ValueError(f"the page needs the lines {begin(block)!r} and {END!r}, each once")
    return f"{before}{marker}\n\n{text}\n\n{END}{after}"


def pages() -> dict[Path, str]:
    """Return the up-to-date text of every page with generated blocks, and the table of commands."""
    found: dict[Path, str] = {}
    for block, (name, write) in BLOCKS.items():
        path = DOCS / name
        page = found.get(path) or path.read_text(encoding="utf-8")
        found[path] = written(page, block, write())
    return {**found, TABLE: command_table.text()}


def out_of_date(wanted: Mapping[Path, str]) -> Iterable[Path]:
    """Return the pages whose file differs from the wanted text."""
    return [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pages, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    options = parser.parse_args(arguments)
    try:
        if not options.check:  # the pages are made of the commands in the table
            command_table.write()
        wanted = pages()
    except (OSError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    stale = out_of_date(wanted)
    if options.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: run python -m tools.reference", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

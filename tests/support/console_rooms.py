"""The modules of the console and of the commands for developers, and for whom they write."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "console"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
    if "skeleton" not in path.parts and path.name != "__init__.py"
}
LIBRARY, TEXT, BROWSER, TERMINAL = range(4)
_LINES = {"roundsman_console.faces.cli.inert_text", "roundsman_console.faces.cli.terminal"}


def kind_of(module: str) -> int:
    """The kind of a module, by its floor; of a developer's command, by its name."""
    package, *folders, name = module.split(".")
    if package == "roundsman_dev":
        if name == "text":
            return TEXT
        terminal = name in {"command", "commands"} or name.endswith("_command")
        return TERMINAL if terminal else LIBRARY
    if folders[:2] == ["faces", "web"]:
        return BROWSER
    if folders == ["faces", "cli", "text"] or module in _LINES:
        return TEXT
    return TERMINAL if folders[:1] == ["faces"] or name in {"main", "commands"} else LIBRARY

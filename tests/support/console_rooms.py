"""The modules of the console, and their kinds, which their names say."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "console"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "roundsman_console").rglob("*.py"))
    if "skeleton" not in path.parts and path.name != "__init__.py"
}
LIBRARY, TEXT, BROWSER, TERMINAL = range(4)


def kind_of(module: str) -> int:
    """The kind of a module, by its name."""
    _, *folders, name = module.split(".")
    if folders == ["cli"] or name in {"main", "command", "commands", "filter_options"}:
        return LIBRARY if module == "roundsman_console.command.commands" else TERMINAL
    if name.endswith(("_command", "verb_commands")):
        return TERMINAL
    if folders[:1] == ["web"] or name in {"forms", "page"}:
        return BROWSER
    if name.endswith(("_forms", "_fields", "_page", "_pages")):
        return BROWSER
    if name in {"cells", "terminal", "text"} or (name.endswith("_text") and name != "step_text"):
        return TEXT
    return LIBRARY

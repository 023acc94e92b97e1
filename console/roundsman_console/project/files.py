"""Writes the files of an application: all of them, or none."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from roundsman_console.cli_errors import ConsoleError

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` by its value. Raises KeyError for a name without a value."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def part(name: str) -> str:
    """Return a part of a file, such as the block of an agent."""
    return (_folder() / "parts" / f"{name}.txt").read_text(encoding="utf-8")


def skeleton() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each file of a new application."""
    yield from _walk(_folder() / "skeleton", Path())


def stacks() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each nested template of this release."""
    folder = _stacks()
    for name in ("agent.yaml", "engine.yaml"):
        yield Path("stacks") / name, (folder / name).read_text(encoding="utf-8")


def write_new_folder(folder: Path, contents: Mapping[Path, str | bytes]) -> None:
    """Write the files into a folder that does not exist or is empty.

    Raises ConsoleError if it has files, or cannot be written. Nothing is left half-written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConsoleError(f"{folder} exists and is not an empty folder. Choose another name.")
    made: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        for path, text in contents.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        made.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    except OSError as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        raise ConsoleError(f"{folder} cannot be written: {error.strerror}.") from error


def replace_files(project: Path, contents: Mapping[Path, str]) -> None:
    """Write files of a project, each at once; on an error the ones before are as they were.

    Raises ConsoleError if one cannot be written.
    """
    before: dict[Path, str | None] = {}
    try:
        for path, text in contents.items():
            target = project / path
            before[target] = target.read_text(encoding="utf-8") if target.exists() else None
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, text)
    except OSError as error:
        for target, old in before.items():
            with suppress(OSError):
                if old is None:
                    target.unlink(missing_ok=True)
                else:
                    _replace(target, old)
        raise ConsoleError(f"{error.filename} cannot be written: {error.strerror}.") from error


def _replace(target: Path, text: str) -> None:
    new = target.with_name(f".{target.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, target)


def _stacks() -> Traversable:
    try:
        return files("roundsman_console.stacks")
    except ModuleNotFoundError:  # run from the repository, where they are at the top level
        return Path(__file__).parents[3] / "stacks"


def _folder() -> Traversable:
    return files("roundsman_console") / "project"


def _walk(folder: Traversable, path: Path) -> Iterator[tuple[Path, str]]:
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.name == "__pycache__":
            continue
        name = f".{each.name.removeprefix('dot-')}" if each.name.startswith("dot-") else each.name
        if each.is_dir():
            yield from _walk(each, path / name)
        else:
            yield path / name, each.read_text(encoding="utf-8")

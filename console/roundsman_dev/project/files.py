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

from roundsman_console.base.errors import ConsoleError

ENVIRONMENT = ".venv"
"""Where an application has its Python environment, which may be made before its files."""
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
    for name in ("agent.yaml", "engine.yaml", "schedule.yaml"):
        yield Path("stacks") / name, (folder / name).read_text(encoding="utf-8")


def write_new_folder(folder: Path, contents: Mapping[Path, str | bytes]) -> None:
    """Write the files into a folder that does not exist or is empty but for an environment `.venv`.

    Raises ConsoleError if it has files, or cannot be written. Nothing is left half-written.
    """
    if folder.exists() and (
        not folder.is_dir() or any(each.name != ENVIRONMENT for each in folder.iterdir())
    ):
        raise ConsoleError(f"{folder} exists and is not an empty folder. Choose another name.")
    made: Path | None = None
    moved: list[Path] = []
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        for path, text in contents.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        if folder.exists():  # perhaps the one that the user is in, so it stays
            for each in sorted(made.iterdir()):
                moved.append(each.rename(folder / each.name))
            made.rmdir()
        else:
            made.chmod(0o755)
            made.rename(folder)
    except BaseException as error:  # also Ctrl-C
        for path in (*moved, *([made] if made is not None else [])):
            _remove(path)
        if isinstance(error, OSError):
            raise ConsoleError(f"{folder} cannot be written: {error.strerror}.") from error
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def read_text(project: Path, path: Path, advice: str = "") -> str:
    """Return the text of a file of a project.

    Raises ConsoleError, which ends with `advice`, if there is no such file or it cannot be read,
    and ConsoleError if it is not text in UTF-8.
    """
    try:
        return (project / path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConsoleError(f"{path} cannot be read: {error.strerror}. {advice}".rstrip()) from error
    except UnicodeDecodeError as error:
        raise ConsoleError(f"{path} is not text in UTF-8: save it as such.") from error


def replace_files(project: Path, contents: Mapping[Path, str | bytes | None]) -> None:
    """Write files of a project, each at once; on an error the ones before are as they were.

    None removes a file. A text gets the line ends of the file that it replaces, and a link stays
    one. Raises ConsoleError if a file cannot be written.
    """
    before: dict[Path, bytes | None] = {}
    try:
        for path, content in contents.items():
            target = (project / path).resolve()
            old = target.read_bytes() if target.exists() else None
            before[target] = old
            _replace(target, _as_bytes(content, old))
    except BaseException as error:  # also Ctrl-C: half of an upgrade fits nothing
        for target, old in before.items():
            with suppress(OSError):
                _replace(target, old)
        if isinstance(error, OSError):
            raise ConsoleError(f"{error.filename} cannot be written: {error.strerror}.") from error
        raise


def _as_bytes(content: str | bytes | None, old: bytes | None) -> bytes | None:
    if not isinstance(content, str):
        return content
    new = content.encode()
    return new.replace(b"\n", b"\r\n") if old is not None and b"\r\n" in old else new


def _replace(target: Path, content: bytes | None) -> None:
    if content is None:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    try:
        new.write_bytes(content)
        os.replace(new, target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _stacks() -> Traversable:
    try:
        return files("roundsman_dev.stacks")
    except ModuleNotFoundError:  # run from the repository, where they are at the top level
        return Path(__file__).parents[3] / "stacks"


def _folder() -> Traversable:
    return files("roundsman_dev") / "project"


def _walk(folder: Traversable, path: Path) -> Iterator[tuple[Path, str]]:
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.name == "__pycache__":
            continue
        name = f".{each.name.removeprefix('dot-')}" if each.name.startswith("dot-") else each.name
        if each.is_dir():
            yield from _walk(each, path / name)
        else:
            yield path / name, each.read_text(encoding="utf-8")

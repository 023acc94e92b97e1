"""Where the local AWS keeps things in a project, and how two commands at once take turns."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roundsman_console.local.errors import LocalError


def find_project(start: Path) -> Path:
    """The nearest folder with a template.yaml, from `start` upwards. Raises LocalError if none."""
    for folder in (start, *start.parents):
        if (folder / "template.yaml").is_file():
            return folder
    raise LocalError(
        f"There is no template.yaml in {start} or above it: "
        "run this inside a Roundsman project, or name one with --project."
    )


def cache_folder(project: Path) -> Path:
    """The project's `.cache` folder, made if need be, and kept out of git by a file of its own."""
    folder = project / ".cache"
    try:
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
    except OSError as error:
        raise LocalError(f"Cannot write in {folder}: {error.strerror}.") from error
    return folder


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """One process at a time is inside this for a path; its hold ends with it.

    `waiting` is called before waiting for another.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield

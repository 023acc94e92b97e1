"""The project's folder, its cache folder, and a file lock between processes."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roundsman_console.base.errors import ConsoleError

CACHE = ".cache"


def find_project(start: Path) -> Path:
    """Return the nearest folder with a template.yaml, from `start` upwards.

    Raises ConsoleError if there is none.
    """
    for folder in (start, *start.parents):
        if (folder / "template.yaml").is_file():
            return folder
    raise ConsoleError(
        f"There is no template.yaml in {start} or above it. Run this inside a Roundsman "
        "project, or name one with --project."
    )


def cache_folder(project: Path) -> Path:
    """Return the project's `.cache` folder; create it if it does not exist.

    A `.gitignore` in the folder excludes it from git.
    """
    folder = project / CACHE
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return folder


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive file lock on `path`; the end of the process also releases it.

    `waiting` is called once if another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield

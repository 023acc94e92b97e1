"""Watches the files of a project from which its stack is made, and deploys each change."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from roundsman_console.aws.local_record import LocalFiles
from roundsman_console.base.errors import ConsoleError
from roundsman_dev.local.update import CodePutter, deploy, running_record

WATCHED = ("template.yaml", "stacks", "functions", "layers")
INTERVAL = 0.2  # seconds between two looks; one at the example's 200 files takes 3 ms
NAMED = 3  # functions at most that a line names

Snapshot = Mapping[Path, tuple[int, int]]
"""The time of the last change, in ns, and the size of each file, by its path in the project."""


def snapshot(project: Path) -> Snapshot:
    """Return the state of all files that matter, without those that tools leave beside them."""
    found: dict[Path, tuple[int, int]] = {}
    pending = [project / name for name in WATCHED]
    while pending:
        path = pending.pop()
        try:
            if path.is_dir():
                pending += [each for each in path.iterdir() if not _is_ignored(each.name)]
            else:
                status = path.stat()
                found[path.relative_to(project)] = (status.st_mtime_ns, status.st_size)
        except OSError:
            continue  # removed in the meantime
    return found


def _is_ignored(name: str) -> bool:
    """Whether an editor or a tool gives this name to a file of its own, or to a folder of them."""
    # 4913 is vim's, which tries the folder with it.
    ignored = name.startswith((".", "#")) or name in ("__pycache__", "4913")
    return ignored or name.endswith(("~", ".pyc", ".tmp"))


def difference(before: Snapshot, after: Snapshot) -> set[Path]:
    """Return the files that were changed, added or removed."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def changes(
    look: Callable[[], Snapshot], seen: Snapshot, sleep: Callable[[float], None] = time.sleep
) -> Iterator[set[Path]]:
    """Yield each set of files that changed since `seen`, without end.

    Files are yielded when they are at rest: two looks in a row found the same. What changes while
    the caller handles one set is in the next one.
    """
    while True:
        now = look()
        if now == seen:
            sleep(INTERVAL)
            continue
        while True:
            sleep(INTERVAL)
            again = look()
            if again == now:
                break
            now = again
        yield difference(seen, now)
        seen = now


def watch_project(
    project: Path,
    instance: LocalFiles,
    seen: Snapshot,
    show: Callable[[str], None],
    changed: Iterable[set[Path]] | None = None,
) -> None:
    """Update the instance's stack after each change of the project's files, until Ctrl-C.

    `seen` is the state of the files that was deployed last. `show` gets one line for each update
    or error. Raises ConsoleError if the instance ends.
    """
    putter: CodePutter | None = CodePutter(project, instance)
    pending: set[Path] = set()  # changed, and not deployed because of an error
    show(f"Watching {', '.join(WATCHED)} in {project} (Ctrl-C ends the watching).")
    for files in changed or changes(lambda: snapshot(project), seen):
        pending |= files
        what = name_files(pending)
        began = time.monotonic()
        try:
            updated = putter.put(pending) if putter is not None else None
            if updated is None:
                putter = None  # until a deployment succeeds, each change needs one
                show(f"{what}: deploying the stack")
                deploy(project, instance)
                putter = CodePutter(project, instance)
            done = "deployed the stack" if updated is None else f"updated {name_functions(updated)}"
            show(f"{what}: {done} ({time.monotonic() - began:.1f} s)")
            pending = set()
        except ConsoleError as error:
            show(f"{what}: {error}")
            running_record(instance)


def name_files(files: Iterable[Path]) -> str:
    """Return the names of files in short: the first one, and how many more there are."""
    first, *others = sorted(str(file) for file in files)
    return f"{first} and {len(others)} more" if others else first


def name_functions(functions: Sequence[str]) -> str:
    """Return the names of functions, or how many there are."""
    return ", ".join(functions) if 0 < len(functions) <= NAMED else f"{len(functions)} functions"

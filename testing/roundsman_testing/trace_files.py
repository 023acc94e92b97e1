"""The files with the whole traces of runs that have failed. It imports nothing slow, for pytest."""

from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir


class TraceFiles:
    """Writes files into one folder: that of pytest's temporary files, or else of the system's."""

    def __init__(self) -> None:
        self.folder: Callable[[], Path] = lambda: Path(gettempdir()) / "roundsman-traces"

    def written(self, text: str) -> str:
        """Write a file. Returns its path, or why it could not be written."""
        try:
            folder = self.folder()
            folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(
                "w", dir=folder, prefix="trace-", suffix=".txt", delete=False, encoding="utf-8"
            ) as file:
                file.write(text)
        except OSError as error:
            return f"not written: {error.strerror}"
        return file.name


TRACE_FILES = TraceFiles()

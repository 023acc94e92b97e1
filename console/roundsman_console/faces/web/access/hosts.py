"""Under which name and port does a browser find the console of a stack?

A browser sends a cookie of 127.0.0.1 to every program that listens there. So each stack and user
have a host of their own below `localhost`, with a name that nobody can guess: browsers take each
such name for the machine itself, and send its cookie nowhere else. The name is kept in a file, so
that a bookmark stays right.
"""

import os
import re
import secrets
import stat
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

LOOPBACK = "127.0.0.1"
"""The host for browsers that find no name below `localhost`."""

FIRST_PORT, PORTS = 17_000, 1_000
"""The ports of consoles: below those that operating systems give to connections."""

_HOST = re.compile(r"[0-9a-f]{24}\.localhost")


def new_host() -> str:
    """Return a host name that nobody can guess."""
    return f"{secrets.token_hex(12)}.localhost"


def usual_port(stack: str) -> int:
    """Return the port of a stack's console, the same each time."""
    return FIRST_PORT + zlib.crc32(stack.encode()) % PORTS


def state_folder() -> Path:
    """Return the folder of what the console keeps for this user."""
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    return root / "roundsman" / "console"


def kept_host(folder: Path, stack: str) -> str:
    """Return the host of a stack, named by its ARN, from a file that only this user may read.

    A file that others can read, or that has another content, is replaced. If the folder cannot be
    used, the name is a new one each time.
    """
    path = folder / f"{sha256(stack.encode()).hexdigest()[:24]}.host"
    found = _read_own(path)
    if _HOST.fullmatch(found):
        return found
    host = new_host()
    with suppress(OSError):
        write_own(path, host)
    return host


def write_own(path: Path, text: str) -> None:
    """Write a file that only this user may read, from its first byte on. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _read_own(path: Path) -> str:
    """Return the content of a file of this user's that nobody else may read, or nothing."""
    with suppress(OSError, ValueError), path.open(encoding="ascii") as file:
        about = os.fstat(file.fileno())
        others = stat.S_IMODE(about.st_mode) & 0o077
        if not others and about.st_uid == os.getuid():
            return file.read(100)
    return ""

"""A local AWS: an emulator on loopback with the project's stack on it. No account, no Docker."""

from .aws import DEFAULT_PORT, DEFAULT_STACK, LocalAws
from .errors import LocalError

__all__ = ["DEFAULT_PORT", "DEFAULT_STACK", "LocalAws", "LocalError"]

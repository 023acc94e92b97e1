"""A local AWS: an emulator on loopback with the project's stack on it. No account, no Docker."""

from roundsman_console.local.aws import DEFAULT_PORT, DEFAULT_STACK, LocalAws
from roundsman_console.local.errors import LocalError

__all__ = ["DEFAULT_PORT", "DEFAULT_STACK", "LocalAws", "LocalError"]

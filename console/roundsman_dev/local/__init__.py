"""A local AWS: an emulator on loopback with the deployed stack, without an account or Docker."""

from roundsman_dev.local.aws import DEFAULT_PORT, DEFAULT_STACK, LocalAws

__all__ = ["DEFAULT_PORT", "DEFAULT_STACK", "LocalAws"]

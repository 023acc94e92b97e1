"""Names that a package offers and imports only when they are first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def names_from(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A package's `__getattr__`: imports a name of `homes` from its module at first use.

    A cold start then never pays for names that its function does not use.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get

"""Lazy imports: a package exports names and imports each one at its first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def names_from(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a module-level `__getattr__` that imports a name of `package` at its first use.

    `homes` maps each name to the module that defines it. Lazy imports shorten the cold start: a
    function loads only the modules that it uses.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get

"""Loads the code of the functions as each function's own process would import it.

Every function has a module called `app` and may have other modules beside it, so each function
imports only from its own folder. All functions share the layers, as one import path.
"""

import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TypeAlias

from roundsman_dev.template import FunctionCode, TemplateProblem

Event: TypeAlias = dict[str, object]
Handler: TypeAlias = Callable[[Event, "Context"], object]


@dataclass(frozen=True)
class Context:
    """The part of Lambda's context object that the handlers use."""

    time_left: int = 30_000
    """In ms."""

    def get_remaining_time_in_millis(self) -> int:
        """The time left, in ms. It is constant, because the clock stands still."""
        return self.time_left


@dataclass
class FunctionInstance:
    """One instance of a function. A new instance has no imported modules and no state."""

    name: str
    code: FunctionCode
    _own: frozenset[str] = field(init=False)
    _modules: dict[str, ModuleType] = field(default_factory=dict)
    _handler: Handler | None = None

    def __post_init__(self) -> None:
        found = self.code.folder.iterdir()
        self._own = frozenset(path.stem for path in found if path.is_dir() or path.suffix == ".py")

    def call(self, event: Event, context: Context) -> object:
        """Call the handler; the first call imports it. Raises what the handler raises."""
        with self._importable():
            if self._handler is None:
                self._handler = self._load()
            return self._handler(event, context)

    def _load(self) -> Handler:
        # Powertools sets the level of a logger once per process, but this process runs many stacks.
        if level := os.environ.get("POWERTOOLS_LOG_LEVEL"):
            logging.getLogger(os.environ.get("POWERTOOLS_SERVICE_NAME")).setLevel(level)
        module, _, name = self.code.handler.rpartition(".")
        importlib.invalidate_caches()
        found = getattr(importlib.import_module(module), name, None)
        if not callable(found):
            raise TemplateProblem(f"{self.name} has no handler {self.code.handler}")
        handler: Handler = found
        return handler

    @contextmanager
    def _importable(self) -> Iterator[None]:
        """Make the modules in this function's folder importable, with those already loaded."""
        folder = str(self.code.folder)
        hidden = _taken_out(self._own)
        sys.modules.update(self._modules)
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            self._modules = _taken_out(self._own)
            sys.modules.update(hidden)


def _taken_out(names: frozenset[str]) -> dict[str, ModuleType]:
    """Remove these modules and their submodules from sys.modules. Returns the removed modules."""
    found = names & sys.modules.keys()
    if any(hasattr(sys.modules[name], "__path__") for name in found):
        found = frozenset(name for name in sys.modules if name.partition(".")[0] in found)
    return {name: sys.modules.pop(name) for name in found}


@contextmanager
def layers_on_the_path(functions: Iterable[FunctionCode]) -> Iterator[None]:
    """Make the functions' layers importable, ahead of installed packages."""
    before = list(sys.path)
    layers = dict.fromkeys(str(layer) for function in functions for layer in function.layers)
    sys.path[:0] = layers
    try:
        yield
    finally:
        sys.path[:] = before

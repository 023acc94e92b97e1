"""The functions' own code, imported as each function's process would import it.

Every function has a module called `app`, and may have others beside it, so each gets those of its
own folder and no other's. Layers are shared by all, as one import path.
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

from roundsman.testing.stack.template import FunctionCode, TemplateProblem

Event: TypeAlias = dict[str, object]
Handler: TypeAlias = Callable[[Event, "Context"], object]


@dataclass(frozen=True)
class Context:
    """What a handler may ask of Lambda's context. Times in ms."""

    time_left: int = 30_000

    def get_remaining_time_in_millis(self) -> int:
        """The same at every question: time stands still."""
        return self.time_left


@dataclass
class Instance:
    """One instance of a function. A new one has imported nothing and remembers nothing."""

    name: str
    code: FunctionCode
    _own: frozenset[str] = field(init=False)
    _modules: dict[str, ModuleType] = field(default_factory=dict)
    _handler: Handler | None = None

    def __post_init__(self) -> None:
        found = self.code.folder.iterdir()
        self._own = frozenset(path.stem for path in found if path.is_dir() or path.suffix == ".py")

    def call(self, event: Event, context: Context) -> object:
        """Call the handler, which the first call imports. Raises what it raises."""
        with self._importable():
            if self._handler is None:
                self._handler = self._load()
            return self._handler(event, context)

    def _load(self) -> Handler:
        # Powertools sets a logger's level once in a process, which here is that of many stacks.
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
        """Let `import` find what lies in this function's folder, as it was loaded before."""
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
    """The modules of these names, and those within them, which are then not imported any more."""
    found = names & sys.modules.keys()
    if any(hasattr(sys.modules[name], "__path__") for name in found):
        found = frozenset(name for name in sys.modules if name.partition(".")[0] in found)
    return {name: sys.modules.pop(name) for name in found}


@contextmanager
def layers_on_the_path(functions: Iterable[FunctionCode]) -> Iterator[None]:
    """Let `import` find what the functions' layers hold, before what is installed."""
    before = list(sys.path)
    layers = dict.fromkeys(str(layer) for function in functions for layer in function.layers)
    sys.path[:0] = layers
    try:
        yield
    finally:
        sys.path[:] = before

"""Keeps what moto has made of a stack, so that its next deployment is a copy of the first.

CloudFormation on moto makes tens of calls and takes a third of a second for a stack; a copy of the
result takes milliseconds. The copy is a pickle, so two deployments share nothing that a test can
change. If a part of moto cannot be pickled, there is no image, and CloudFormation makes each stack.
"""

import io
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Protocol, TypeAlias
from weakref import WeakValueDictionary

from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.models import MockAWS
from moto.kms.utils import AbstractPrivateKey

_Rebuilt: TypeAlias = tuple[Callable[..., object], tuple[object, ...]]
_RLock = type(threading.RLock())


class _Backends(Protocol):
    """The part of moto's BackendDict of a service that is used: backends, by account and region."""

    def __getitem__(self, account: str, /) -> MutableMapping[str, BaseBackend]: ...

    def items(self) -> Iterable[tuple[str, Mapping[str, BaseBackend]]]: ...


def _in_use() -> "tuple[_Backends, ...]":
    """The backends of each service that had a call."""
    return tuple(BackendDict._instances)  # type: ignore[misc]  # one list, of all kinds of backends


def moto_is_new() -> bool:
    """Whether moto has no resources yet, so an image can be made or restored.

    False inside a second `mock_aws()`, which keeps the resources of the first.
    """
    return MockAWS._nested_count == 1 and not _in_use()


@dataclass(frozen=True)
class MotoImage:
    """All resources that moto had at one time, in all accounts and regions."""

    _services: tuple[_Backends, ...] = field(repr=False)
    _pickled: bytes = field(repr=False)
    _shared: Mapping[str, object] = field(repr=False)
    """Objects that copies share, because nothing changes them, by their names in the pickle."""

    @classmethod
    def taken(cls) -> "MotoImage | None":
        """An image of moto as it is now; None if moto has something that cannot be copied."""
        services = _in_use()
        backends = [
            {account: dict(regions) for account, regions in each.items()} for each in services
        ]
        file = io.BytesIO()
        pickler = _Pickler(file, services)
        try:
            pickler.dump(backends)
        except (pickle.PicklingError, TypeError, AttributeError):
            return None
        return cls(services, file.getvalue(), pickler.shared)

    def restore(self) -> None:
        """Give moto these resources. `moto_is_new` must be true."""
        copies = _Unpickler(io.BytesIO(self._pickled), self._shared).load()
        for service, accounts in zip(self._services, copies, strict=True):
            for account, regions in accounts.items():
                service[account].update(regions)


class _Pickler(pickle.Pickler):
    """Pickles the backends of moto, including locks and references to moto's global objects."""

    def __init__(self, file: io.BytesIO, services: tuple[object, ...]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shared: dict[str, object] = {}
        self._global = {id(each) for each in services}

    def persistent_id(self, value: object) -> str | None:
        """The name of an object that copies share: a global of moto, or one without a state.

        None for any other object, which is copied.
        """
        stateless = isinstance(value, AbstractPrivateKey) or (
            isinstance(value, FunctionType) and value.__closure__ is None
        )
        if not stateless and id(value) not in self._global:
            return None
        name = str(id(value))
        self.shared[name] = value
        return name

    def reducer_override(self, value: object) -> _Rebuilt:
        """How to make a copy of an object that pickle alone cannot copy."""
        if isinstance(value, _RLock):
            return threading.RLock, ()
        if isinstance(value, WeakValueDictionary):
            return WeakValueDictionary, (dict(value),)
        return NotImplemented  # type: ignore[no-any-return]  # as pickle has it: copy it yourself


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` has written."""

    def __init__(self, file: io.BytesIO, shared: Mapping[str, object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, name: str) -> object:
        """The shared object of that name."""
        return self._shared[name]

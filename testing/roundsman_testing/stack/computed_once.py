"""Computes once per process what botocore and moto compute again for each client and each call.

All of it follows from AWS's descriptions of its services, which no test changes. So each client,
request and answer is the same as without, only sooner.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TypeAlias
from unittest.mock import patch

from botocore.client import ClientCreator
from botocore.endpoint_provider import EndpointProvider
from botocore.hooks import (  # type: ignore[attr-defined]  # private
    EVENT_ALIASES,
    BaseEventHooks,
    EventAliaser,
    NodeList,
    _PrefixTrie,
)
from botocore.loaders import create_loader
from botocore.model import ServiceModel
from botocore.useragent import sanitize_user_agent_string_component
from moto.core.model import StructureShape
from moto.core.serialize import (
    DEFAULT_ALIAS_PROVIDERS,
    AttributePicker,
    AttributePickerContext,
    BaseJSONSerializer,
)
from moto.core.utils import camelcase_to_underscores, method_names_from_class

_Node: TypeAlias = dict[str, Any]
"""A node of botocore's tree of handlers."""

_NOT_THERE = object()
_init_aliaser = EventAliaser.__init__
# botocore's types leave out private names.
_load_service_model = ClientCreator._load_service_model  # type: ignore[attr-defined]
_create_methods = ClientCreator._create_methods  # type: ignore[attr-defined]
_copy_handlers, _append, _remove = (
    _PrefixTrie.__copy__,
    _PrefixTrie.append_item,
    _PrefixTrie.remove_item,
)
pick = AttributePicker.__call__
write_structure = BaseJSONSerializer._serialize_type_structure

_models: dict[int, tuple[object, ServiceModel]] = {}
_methods: dict[ServiceModel, dict[str, Callable[..., object]]] = {}
_providers: dict[tuple[int, int, frozenset[str]], tuple[object, object, EndpointProvider]] = {}
_aliases: dict[str, str] = {}


@contextmanager
def computed_once() -> Iterator[None]:
    """Keep what botocore computes for clients and calls, until the process ends."""
    with ExitStack() as changes:
        for target, (_, new) in REPLACED.items():
            changes.enter_context(patch(target, new))
        yield


def _service_model(
    self: ClientCreator, service_name: str, api_version: str | None = None
) -> ServiceModel:
    """The model of a description, whose shapes are resolved by the first client that needs them."""
    loader = self._loader  # type: ignore[attr-defined]  # private
    described = loader.load_service_model(service_name, "service-2", api_version=api_version)
    if id(described) not in _models:
        # The description is kept too, so that no other can have its id.
        model = ServiceModel(described, service_name=service_name)
        _models[id(described)] = described, model
    return _models[id(described)][1]


def _methods_of(
    self: ClientCreator, service_model: ServiceModel
) -> dict[str, Callable[..., object]]:
    """The methods of a client's class: a copy, since the handlers of a session may add others."""
    if service_model not in _methods:
        _methods[service_model] = _create_methods(self, service_model)
    return dict(_methods[service_model])


def _endpoint_provider(
    ruleset_data: Mapping[str, object],
    partition_data: Mapping[str, object],
    excluded_params: Collection[str] | None = None,
) -> EndpointProvider:
    """What finds the endpoint of a call by the rules of a service; it keeps nothing of a client."""
    key = id(ruleset_data), id(partition_data), frozenset(excluded_params or ())
    if key not in _providers:
        provider = EndpointProvider(ruleset_data, partition_data, excluded_params)
        _providers[key] = ruleset_data, partition_data, provider
    return _providers[key][2]


def _with_known_aliases(
    self: EventAliaser, event_emitter: BaseEventHooks, event_aliases: dict[str, str] | None = None
) -> None:
    """An emitter that shares the names it has looked up with all that have the same aliases."""
    _init_aliaser(self, event_emitter, event_aliases)
    if event_aliases is None or event_aliases == EVENT_ALIASES:
        self._alias_name_cache = _aliases  # type: ignore[attr-defined]  # private


def _shared_handlers(self: _PrefixTrie) -> _PrefixTrie:
    """What handles events, for another client: the same, until one of the two is changed.

    A copy for each client would be one of hundreds of lists.
    """
    shared = _PrefixTrie()
    shared._root = self._root
    return shared


def _append_handler(self: _PrefixTrie, key: str, value: object, section: int = 1) -> None:
    """Add a handler, on a path of its own."""
    self._root = _with_own_path(self._root, key.split("."))
    _append(self, key, value, section)


def _remove_handler(self: _PrefixTrie, key: str, value: object) -> None:
    """Remove a handler, on a path of its own."""
    self._root = _with_own_path(self._root, key.split("."))
    _remove(self, key, value)


def _with_own_path(node: _Node, path: Sequence[str]) -> _Node:
    """A copy of a node and of those below it on a path; all others are shared."""
    children = dict(node["children"])
    if path and path[0] in children:
        children[path[0]] = _with_own_path(children[path[0]], path[1:])
    values = node["values"] and NodeList(*map(list, node["values"]))
    return {"chunk": node["chunk"], "children": children, "values": values}


def picked(self: AttributePicker, context: AttributePickerContext) -> object:
    """The value of a member of an answer that is a plain dictionary, as nearly all are."""
    found = context.obj
    if (
        type(found) is not dict
        or self.response_transformers
        or self.alias_providers is not DEFAULT_ALIAS_PROVIDERS
    ):
        return pick(self, context)
    known = context.shape.__dict__.setdefault("_keys_of_dictionaries", {})
    key = type(self), context.key
    if key not in known:
        known[key] = tuple(self.get_possible_keys(context))
    for possible in known[key]:
        if "." in possible:  # a path, which moto follows
            return pick(self, context)
        value = found.get(possible, _NOT_THERE)
        if value is not _NOT_THERE:
            return value
    return None


def serialize_structure(
    self: BaseJSONSerializer,
    serialized: dict[str, object],
    value: object,
    shape: StructureShape,
    key: str,
) -> None:
    """Write a structure into an answer; an attribute of an item is what moto has of it already."""
    if key and shape.name == "AttributeValue" and (copied := _attribute(value)) is not None:
        serialized[self.get_serialized_name(shape, key)] = copied
    else:
        write_structure(self, serialized, value, shape, key)


def _attribute(value: object) -> dict[str, object] | None:
    """A copy of DynamoDB's JSON for one attribute; None for what has to be converted."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(kind, held)] = value.items()
    match kind, held:
        case (("S" | "N"), str()):
            return {kind: held}
        case (("BOOL" | "NULL"), bool()):
            return {kind: held}
        case "M", dict():
            members = {name: _attribute(each) for name, each in held.items()}
            return None if None in members.values() else {kind: members}
        case "L", list():
            items = [_attribute(each) for each in held]
            return None if None in items else {kind: items}
        case _:
            return None


REPLACED: Mapping[str, tuple[object, object]] = {
    # Megabytes of JSON are read.
    "botocore.session.create_loader": (create_loader, cache(create_loader)),
    "botocore.client.ClientCreator._load_service_model": (_load_service_model, _service_model),
    "botocore.client.ClientCreator._create_methods": (_create_methods, _methods_of),
    "botocore.regions.EndpointProvider": (EndpointProvider, _endpoint_provider),
    "botocore.hooks.EventAliaser.__init__": (_init_aliaser, _with_known_aliases),
    "botocore.hooks._PrefixTrie.__copy__": (_copy_handlers, _shared_handlers),
    "botocore.hooks._PrefixTrie.append_item": (_append, _append_handler),
    "botocore.hooks._PrefixTrie.remove_item": (_remove, _remove_handler),
    # For each part of the user agent's header, in each request.
    "botocore.useragent.sanitize_user_agent_string_component": (
        sanitize_user_agent_string_component,
        cache(sanitize_user_agent_string_component),
    ),
    # For each attribute of a queue, whenever a message is read from it.
    "moto.sqs.models.camelcase_to_underscores": (
        camelcase_to_underscores,
        cache(camelcase_to_underscores),
    ),
    "moto.core.responses.method_names_from_class": (
        method_names_from_class,
        cache(method_names_from_class),
    ),
    "moto.core.serialize.AttributePicker.__call__": (pick, picked),
    "moto.core.serialize.BaseJSONSerializer._serialize_type_structure": (
        write_structure,
        serialize_structure,
    ),
}
"""The functions that are replaced, each with one that returns the same and keeps it."""

"""The administration paths: the ledger, the log of calls, the callbacks and the fault rules.

They never return the contents of orders: the ledger keeps only ids, keys and counts.
"""

from collections.abc import Callable, Mapping

from roundsman_testing.remote_services.application import ExampleServices, NotJson, parse_json
from roundsman_testing.remote_services.fault_rules import FaultsInvalid
from roundsman_testing.remote_services.values import Answer, Json, refused

_METHODS = {
    "/": ("GET",),
    "/_ledger": ("GET", "DELETE"),
    "/_calls": ("GET",),
    "/_callbacks": ("GET",),
    "/_faults": ("GET", "PUT", "DELETE"),
}
_FILTERED = ("/_ledger", "/_calls", "/_callbacks")


def handle(
    application: ExampleServices,
    method: str,
    path: str,
    query: Mapping[str, list[str]],
    body: bytes,
) -> Answer:
    """Answer one request to an administration path."""
    if path not in _METHODS:
        return refused(404, "NoSuchResource", "GET / lists the calls that exist")
    if method not in _METHODS[path]:
        allow = ", ".join(_METHODS[path])
        return Answer(405, {"error": "MethodNotAllowed", "allow": allow}, {"Allow": allow})
    order_ids = query.get("orderId", [])
    is_filter = method == "GET" and path in _FILTERED and len(order_ids) == len(query) == 1
    if query and not is_filter:
        sentence = "one orderId can be asked of the ledger, calls and callbacks, nothing else"
        return refused(400, "QueryInvalid", sentence)
    return _answer(application, method, path, order_ids[0] if order_ids else None, body)


def _answer(
    application: ExampleServices, method: str, path: str, order_id: str | None, body: bytes
) -> Answer:
    if method == "DELETE":
        if path == "/_ledger":
            application.reset()
        else:
            application.set_faults({"rules": []})
        return Answer(204)
    if method == "PUT":
        return _set_faults(application, body)
    listed: dict[str, Callable[[], Json]] = {
        "/": lambda: _index(application),
        "/_ledger": lambda: application.effects(order_id),
        "/_calls": lambda: application.calls(order_id),
        "/_callbacks": lambda: application.callbacks(order_id),
        "/_faults": application.faults,
    }
    return Answer(200, listed[path]())


def _index(application: ExampleServices) -> Json:
    admin = [f"{method} {path}" for path, methods in _METHODS.items() for method in methods]
    return {"calls": [operation.name for operation in application.operations], "admin": [*admin]}


def _set_faults(application: ExampleServices, body: bytes) -> Answer:
    try:
        application.set_faults(parse_json(body))
    except NotJson as problem:
        return refused(400, "BodyNotJson", str(problem))
    except FaultsInvalid as invalid:
        return refused(400, "FaultsInvalid", str(invalid), problems=[*invalid.problems])
    return Answer(200, application.faults())

"""Reads fault rules from JSON and reports every problem with its path.

All functions are pure. `false` and `null` mean that a field is absent.
"""

from collections.abc import Callable, Collection, Sequence

from roundsman_testing.remote_services.contract import OPERATIONS, ServiceOperation
from roundsman_testing.remote_services.faults import (
    Failure,
    ForgetKey,
    Hang,
    LoseAnswer,
    Refuse,
    Rule,
    Spoil,
)
from roundsman_testing.remote_services.values import Answer, Body, Json

MAX_RULES = 1000
MAX_LATENCY_MS = 600_000
MAX_HANG_SECONDS = 3600
MAX_HUGE_BYTES = 100_000_000
HUGE_BYTES = 10_000_000  # if hugeBody is true

# A rule has at most one failure, except that loseAnswer can be combined with hang.
_WAYS_TO_FAIL = (
    "status", "hang", "loseAnswer", "truncate", "nonJson", "hugeBody", "redirect", "forgetKey",
)  # fmt: skip

_Check = Callable[[Json], str]  # returns what the value must be; empty if the value is valid


class FaultsInvalid(ValueError):
    """Raised if fault rules are invalid; `problems` lists all problems."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_rules(document: Json, operations: Sequence[ServiceOperation] = OPERATIONS) -> list[Rule]:
    """Read `{"rules": [...]}` for these operations. Raises FaultsInvalid with all problems."""
    given = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(given, list):
        raise FaultsInvalid(['rules: the body must be an object such as {"rules": [...]}'])
    unknown = sorted(document.keys() - {"rules"})
    problems = [f"{name}: no such field; only rules is known" for name in unknown]
    if len(given) > MAX_RULES:
        raise FaultsInvalid([*problems, f"rules: at most {MAX_RULES} rules can be set"])
    for index, rule in enumerate(given):
        problems += [f"rules[{index}]{problem}" for problem in _problems(rule, operations)]
    if problems:
        raise FaultsInvalid(problems)
    return [_rule(rule) for rule in given if isinstance(rule, dict)]


def _problems(rule: Json, operations: Sequence[ServiceOperation]) -> list[str]:
    if not isinstance(rule, dict):
        return [": must be an object"]
    checks = {**_CHECKS, **_names(operations)}
    present = _present(rule)
    problems: list[str] = []
    for name, value in present.items():
        check = checks.get(name)
        if check is None:
            known = ", ".join(sorted(checks))
            problems.append(f".{name}: no such field; a rule may have {known}")
        elif wanted := check(value):
            problems.append(f".{name}: must be {wanted}")
    return problems or _contradictions(present, operations)


def _contradictions(rule: Body, operations: Sequence[ServiceOperation]) -> list[str]:
    problems: list[str] = []
    ways = [name for name in _WAYS_TO_FAIL if name in rule]
    if len(ways) > 1 and ways != ["hang", "loseAnswer"]:
        problems.append(f": {' and '.join(ways)} exclude each other; use a rule for each")
    if ways and ways != ["status"]:
        extra = [name for name in ("body", "retryAfter") if name in rule]
        problems += [f".{name}: goes with status, not with {ways[0]}" for name in extra]
    if not ways and not rule.keys() & {"latencyMs", "errorRate", "body", "retryAfter"}:
        problems.append(": does nothing; give it latencyMs, errorRate, status or another fault")
    if not any(_rule(rule).fits(operation) for operation in operations):
        problems.append(": no call is of this service and this operation")
    return problems


def _rule(given: Body) -> Rule:
    present = _present(given)
    times = present.get("times")
    return Rule(
        given=given,
        service=_text_or_none(present.get("service")),
        operation=_text_or_none(present.get("operation")),
        order_id=_text_or_none(present.get("orderId")),
        latency_ms=_whole(present.get("latencyMs")),
        failure=_failure(present),
        error_rate=_number(present.get("errorRate", 1.0)),
        seed=_whole(present.get("seed")),
        times=None if times is None else _whole(times),
        after=_whole(present.get("after")),
    )


def _failure(rule: Body) -> Failure | None:
    hang = rule.get("hang")
    silence = None if hang is None else Hang(None if hang is True else _number(hang))
    if "loseAnswer" in rule:
        return LoseAnswer(silence)
    if "forgetKey" in rule:
        return ForgetKey()
    return silence or _spoil(rule) or _refusal(rule)


def _spoil(rule: Body) -> Spoil | None:
    if "truncate" in rule:
        return Spoil("truncate")
    if "nonJson" in rule:
        return Spoil("nonJson")
    size = rule.get("hugeBody")
    return None if size is None else Spoil("hugeBody", HUGE_BYTES if size is True else _whole(size))


def _refusal(rule: Body) -> Refuse | None:
    body: Json = {"error": "InjectedFault"}
    if "redirect" in rule:
        return Refuse(Answer(307, body, {"Location": str(rule["redirect"])}))
    if not rule.keys() & {"status", "errorRate", "body", "retryAfter"}:
        return None
    headers = {"Retry-After": str(rule["retryAfter"])} if "retryAfter" in rule else {}
    return Refuse(Answer(_whole(rule.get("status", 503)), rule.get("body", body), headers))


def _present(rule: Body) -> Body:
    return {name: value for name, value in rule.items() if value is not None and value is not False}


def _one_of(names: Collection[str]) -> _Check:
    wanted = f"one of {', '.join(sorted(names))}"
    return lambda value: "" if isinstance(value, str) and value in names else wanted


def _between(least: int, most: int) -> _Check:
    def check(value: Json) -> str:
        whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if whole else f"a whole number from {least} to {most}"

    return check


def _number_between(least: float, most: float) -> _Check:
    def check(value: Json) -> str:
        wanted = f"a number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return wanted
        return "" if least <= value <= most else wanted

    return check


def _true_or(check: _Check) -> _Check:
    def either(value: Json) -> str:
        wanted = "" if value is True else check(value)
        return f"true, or {wanted}" if wanted else ""

    return either


def _flag(value: Json) -> str:
    return "" if value is True else "true or false"


def _printable(value: Json) -> str:
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isprintable()
        and 0 < len(value) <= 2048
    ):
        return ""
    return "printable ASCII text"  # it may become a header


def _seconds_or_text(value: Json) -> str:
    number_wanted = _between(0, 86_400)(value)
    if not number_wanted or not _printable(value):
        return ""
    return f"{number_wanted} (seconds), or an HTTP date"


def _anything(_value: Json) -> str:
    return ""


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _names(operations: Sequence[ServiceOperation]) -> dict[str, _Check]:
    services = {name for each in operations for name in (each.service, each.resource)}
    return {
        "service": _one_of(services),
        "operation": _one_of({each.name for each in operations} | {"perform", "undo"}),
    }


_CHECKS: dict[str, _Check] = {
    "orderId": _printable,
    "latencyMs": _between(0, MAX_LATENCY_MS),
    "errorRate": _number_between(0, 1),
    "seed": _between(0, 2**53),
    "status": _between(200, 599),
    "body": _anything,
    "retryAfter": _seconds_or_text,
    "hang": _true_or(_number_between(0.001, MAX_HANG_SECONDS)),
    "loseAnswer": _flag,
    "truncate": _flag,
    "nonJson": _flag,
    "hugeBody": _true_or(_between(1, MAX_HUGE_BYTES)),
    "redirect": _printable,
    "times": _between(1, 2**53),
    "after": _between(0, 2**53),
    "forgetKey": _flag,
}

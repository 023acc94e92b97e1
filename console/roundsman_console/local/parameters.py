"""Chooses the stack's parameters and checks them against the template."""

import importlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from roundsman.testing.remote_services.server import DEFAULT_PORT
from roundsman_console.local.errors import LocalError

AGENT_URLS = {
    "inventory": "InventoryUrl",
    "payment": "PaymentUrl",
    "shipping": "ShippingUrl",
    "mail": "MailUrl",
}
DEFAULT_SERVICES = f"http://127.0.0.1:{DEFAULT_PORT}"  # the address of `roundsman services`


@dataclass(frozen=True)
class Declared:
    """A parameter as the template declares it; None if the template does not set the property."""

    type: str = "String"
    default: str | None = None
    allowed: tuple[str, ...] | None = None
    """`AllowedValues`."""
    least: float | None = None
    """`MinValue`."""
    most: float | None = None
    """`MaxValue`."""
    shortest: int | None = None
    """`MinLength`, in characters."""
    longest: int | None = None
    """`MaxLength`, in characters."""
    pattern: str | None = None
    """`AllowedPattern`."""

    def objection(self, value: str) -> str | None:
        """Return the problem with a value; None if the template accepts the value."""
        if self.allowed is not None and value not in self.allowed:
            return f"it must be one of {', '.join(self.allowed)}"
        if self.type == "Number":
            return self._objection_to_number(value)
        if self.shortest is not None and len(value) < self.shortest:
            return f"it must be at least {self.shortest} characters long"
        if self.longest is not None and len(value) > self.longest:
            return f"it must be at most {self.longest} characters long"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"it must match {self.pattern}"
        return None

    def _objection_to_number(self, value: str) -> str | None:
        try:
            number = float(value)
        except ValueError:
            return "it must be a number"
        if self.least is not None and not number >= self.least:
            return f"it must be at least {self.least:g}"
        if self.most is not None and not number <= self.most:
            return f"it must be at most {self.most:g}"
        return None


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Parse `Key=Value` texts into a mapping.

    Raises LocalError if `=` or the key is missing, or a key is repeated.
    """
    found: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise LocalError(
                f"--param takes Key=Value, as in SupervisorIntervalSeconds=5; {text!r} is not that."
            )
        if key in found:
            raise LocalError(f"--param {key} is given twice.")
        found[key] = value
    return found


def parse_base_url(text: str) -> str:
    """Return a base URL without its trailing slash. Raises LocalError if the URL is not valid."""
    wrong = f"--services takes a base URL such as http://127.0.0.1:8080; {text!r} is not one"
    if any(character.isspace() or character in "\"'" for character in text):
        raise LocalError(f"{wrong}.")
    try:
        parts = urlsplit(text)
        _ = parts.port  # urlsplit validates the port only when it is read
    except ValueError as error:
        raise LocalError(f"{wrong}: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LocalError(f"{wrong}.")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise LocalError(f"{wrong}: it may hold no user, query or fragment.")
    return text.rstrip("/")


def declared_parameters(template: Path) -> dict[str, Declared]:
    """Return the parameters that a template declares. Raises LocalError if it is unreadable."""
    try:
        parse = importlib.import_module("samcli.yamlhelper").yaml_parse
    except ImportError as error:
        raise LocalError(
            "The SAM CLI is not installed beside roundsman: run `make install`."
        ) from error
    try:
        parsed = parse(template.read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(f"Cannot read {template}: {error.strerror}.") from error
    except Exception as error:  # the parser's exception types are not known
        where = " ".join(str(error).split())
        raise LocalError(f"{template} is not valid YAML: {where}") from error
    sections = parsed.get("Parameters") if isinstance(parsed, dict) else None
    if not isinstance(sections, dict):
        return {}
    return {str(name): _declared(body) for name, body in sections.items() if isinstance(body, dict)}


def _declared(body: Mapping[str, object]) -> Declared:
    allowed = body.get("AllowedValues")
    return Declared(
        type=str(body.get("Type", "String")),
        default=None if body.get("Default") is None else _text(body["Default"]),
        allowed=tuple(_text(value) for value in allowed) if isinstance(allowed, list) else None,
        least=_number(body.get("MinValue")),
        most=_number(body.get("MaxValue")),
        shortest=_whole(body.get("MinLength")),
        longest=_whole(body.get("MaxLength")),
        pattern=None if body.get("AllowedPattern") is None else str(body["AllowedPattern"]),
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _whole(value: object) -> int | None:
    return None if value is None else int(str(value))


def architecture(machine: str | None = None) -> str:
    """Return Lambda's name for this machine's architecture.

    Raises LocalError if Lambda does not have this architecture.
    """
    machine = machine or platform.machine()
    for name, spellings in {"x86_64": ("x86_64", "amd64"), "arm64": ("arm64", "aarch64")}.items():
        if machine.lower() in spellings:
            return name
    raise LocalError(
        f"Lambda has no {machine} architecture, so its functions cannot run on this machine."
    )


def choose_parameters(
    declared: Mapping[str, Declared], asked: Mapping[str, str], services: str | None, runtime: str
) -> dict[str, str]:
    """Return all parameters for the deployment.

    The values in `asked` take precedence over those from the machine and from `services`. Without
    `services`, the URL parameters that have no default get the address of `roundsman services`.

    Raises LocalError if the template does not declare a name, if a value is not valid, or if a
    required parameter has no value.
    """
    chosen = {"PythonRuntime": runtime, "Architecture": architecture()}
    chosen = {name: value for name, value in chosen.items() if name in declared}
    if services is None:
        urls = [name for name in AGENT_URLS.values() if _is_required(declared, name)]
        chosen.update(dict.fromkeys(urls, DEFAULT_SERVICES))
    else:
        chosen.update(dict.fromkeys(AGENT_URLS.values(), parse_base_url(services)))
    chosen.update(asked)
    for name, value in chosen.items():
        decided = name == "PythonRuntime" and name not in asked
        _check(declared, name, value, hint=_OTHER_PYTHON if decided else "")
    missing = [name for name in declared if _is_required(declared, name) and name not in chosen]
    if missing:
        raise LocalError(
            f"template.yaml needs a value for {', '.join(missing)}: give it with --param Key=Value."
        )
    return chosen


def _is_required(declared: Mapping[str, Declared], name: str) -> bool:
    return name in declared and declared[name].default is None


_OTHER_PYTHON = " It is the Python that roundsman runs on, so install it on another."


def _check(declared: Mapping[str, Declared], name: str, value: str, hint: str) -> None:
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise LocalError(f"template.yaml has no parameter {name}; it has: {known}.")
    objection = declared[name].objection(value)
    if objection is None and '"' in value:
        objection = (
            "it may hold no double quote"  # SAM's syntax for parameter overrides cannot escape it
        )
    if objection is not None:
        raise LocalError(f"The parameter {name} cannot be {value!r}: {objection}.{hint}")


def service_urls(declared: Mapping[str, Declared], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each agent's remote service, by the agent's name."""
    urls: dict[str, str] = {}
    for agent, name in AGENT_URLS.items():
        default = declared[name].default if name in declared else None
        url = chosen.get(name, default)
        if url is not None:
            urls[agent] = url
    return urls

"""A fault proxy between the functions and the emulator's AWS: some calls fail as AWS's fail.

It stands before what the functions call, and only there. What the emulator does by itself (it
polls the queues, ticks the timer, hands alerts on to their subscribers) goes round it.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from roundsman_console.base.process import wait_until
from roundsman_dev.local.emulator import free_port
from roundsman_dev.local.environment import ensure_environment

START_WITHIN = 60.0  # seconds
GIVEN_UP_AFTER_MS = 5000  # the functions' read timeout; those for notes give up after 2 s
LAUNCH = (
    "import random, sys; random.seed(int(sys.argv.pop())); from microburst.cli import main; main()"
)

THROTTLED = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "sqs": "RequestThrottled",
    "sns": "ThrottledException",
}
BROKEN = {
    "dynamodb": "InternalServerError",
    "sqs": "InternalFailure",
    "sns": "InternalErrorException",
}


@dataclass(frozen=True)
class Kind:
    """A way for a call to fail. `weight` is its share of all faults."""

    name: str
    weight: float
    happens: bool  # whether the call has its effect all the same

    def effect(self, service: str) -> Mapping[str, object]:
        """What the proxy does to a call of the service, in its own words."""
        too_long = GIVEN_UP_AFTER_MS + 1000
        effects: dict[str, Mapping[str, object]] = {
            "throttled": {"error": {"code": THROTTLED[service], "status": 400}},
            "error 500": {"error": {"code": BROKEN[service], "status": 500}},
            "timed out": {"timeout_ms": too_long},
            "late": {"latency": too_long},
            "reset before": {"reset": True},
            "reset after": {"response": {"abort_bytes": 0}},
            "cut off": {"response": {"abort_frac": 0.5}},
            "truncated": {"response": {"truncate_frac": 0.5}},
        }
        return effects[self.name]


# Those that make a function wait are fewer: every order waits with it.
KINDS = (
    Kind("throttled", 0.22, happens=False),
    Kind("error 500", 0.18, happens=False),
    Kind("timed out", 0.06, happens=False),
    Kind("late", 0.06, happens=True),  # when its caller has given up and asked again
    Kind("reset before", 0.12, happens=False),
    Kind("reset after", 0.12, happens=True),
    Kind("cut off", 0.12, happens=True),  # the connection, in the middle of the answer
    Kind("truncated", 0.12, happens=True),  # the answer, on a connection that stays
)


@dataclass(frozen=True)
class Faults:
    """That share of a service's calls fails, in each of these ways."""

    service: str
    share: float
    kinds: Sequence[Kind] = KINDS

    def rules(self) -> Iterator[tuple[Kind, dict[str, object]]]:
        """One rule a kind. Rules are asked in turn: each draws among what those before let pass."""
        left, total = 1.0, sum(kind.weight for kind in self.kinds)
        for kind in self.kinds:
            of_all = self.share * kind.weight / total
            drawn = {"service": self.service, "probability": of_all / left}
            yield kind, {**drawn, **kind.effect(self.service)}
            left -= of_all


class _Stats(TypedDict):
    by_rule: list[dict[str, int]]
    by_service: list[dict[str, object]]


@dataclass(frozen=True)
class FaultProxy:
    """A running proxy, which lets everything pass at first."""

    port: int
    _rules: dict[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def set_faults(self, *faults: Faults) -> None:
        """Let calls fail in this way from now on, and no longer in the previous way."""
        wanted = [(each.service, kind, rule) for each in faults for kind, rule in each.rules()]
        answer = self._control("rules", "POST", [rule for _, _, rule in wanted])
        made = cast("list[dict[str, int]]", answer)
        for rule, (service, kind, _) in zip(made, wanted, strict=True):
            self._rules[rule["id"]] = (service, kind.name)

    def fired(self) -> Counter[tuple[str, str]]:
        """How many calls failed so far, by service and kind."""
        counts: Counter[tuple[str, str]] = Counter()
        for rule in self._stats()["by_rule"]:
            counts[self._rules[rule["id"]]] += rule["fired"]
        return counts

    def calls(self) -> Counter[str]:
        """How many calls came so far, by service."""
        return Counter(
            {
                str(each["service"]): cast("int", each["requests"])
                for each in self._stats()["by_service"]
            }
        )

    def warm_up(self) -> None:
        """Pass on one call of each service, to nobody yet: it reads all that botocore knows first.

        That takes it seconds, in which it answers nobody.
        """
        for service in THROTTLED:
            signed = f"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{service}/aws4_request"
            request = Request(self.url, b"{}", {"Authorization": signed}, method="POST")
            with suppress(HTTPError):
                urlopen(request, timeout=START_WITHIN).close()

    def answers(self) -> bool:
        try:
            self._control("health")
        except OSError:
            return False
        return True

    def _stats(self) -> _Stats:
        return cast("_Stats", self._control("stats"))

    def _control(self, what: str, method: str = "GET", body: object = None) -> object:
        content = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/_microburst/{what}", content, method=method)
        with urlopen(request, timeout=START_WITHIN) as answer:
            return cast("object", json.loads(answer.read()))


@contextmanager
def fault_proxy(project: Path, upstream_port: int, log: Path, seed: int) -> Iterator[FaultProxy]:
    """A proxy before the emulator that will answer on that port; its dice are thrown by `seed`."""
    proxy = FaultProxy(free_port())
    python = ensure_environment(project).emulator_python
    where = ("--upstream", f"http://127.0.0.1:{upstream_port}", "--port", str(proxy.port))
    with log.open("w") as out:
        child = subprocess.Popen(
            [str(python), "-I", "-c", LAUNCH, *where, str(seed)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={"LANG": "C.UTF-8"},  # nothing that leads to an AWS account
        )
    try:
        wait_until(lambda: proxy.answers() or child.poll() is not None, START_WITHIN)
        assert proxy.answers(), f"the fault proxy does not answer: {log.read_text()}"
        proxy.warm_up()
        yield proxy
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

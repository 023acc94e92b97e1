"""Measures where the processor time of the functions goes: function by function, and by subject.

The real handlers carry orders of four steps, on DynamoDB Local and on queues in the same process,
under Python's profiler. It measures the processor time of the thread, so no wait counts. The time
of Python's own libraries counts for the code that called them. Requests to SQS are answered in this
process, so their exchange over the network is missing; that of DynamoDB is there, without TLS.
The profiler makes calls of small functions dearer: shares are meant to be compared, not times.

The calls of functions are counted too. They hardly differ from one run to the next, on any machine.
"""

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast
from unittest.mock import patch

from benchmarks.cost.counting import BATCHES, by_role
from benchmarks.harness.meter import Counts, Meter, metered
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stack import stack_on_the_engine
from benchmarks.report import Report, Setting, Table, amount
from roundsman.model.instants import SECOND

if TYPE_CHECKING:
    from roundsman.testing.stack import Context

ORDERS = 20
OF_A_BATCH = 10
ROUNDS = 50
"""How often time is passed on from a library to its callers; chains of calls are shorter."""
NOT_OURS = "not ours"

Where: TypeAlias = tuple[str, int, str]
"""A function as the profiler names it: file, line, name."""
Timing: TypeAlias = tuple[int, int, float, float]
"""Calls, calls that are not recursive, its own time, and its time with what it called; in s."""
CALLS: Final = 0
OWN_TIME: Final = 2
"""Their places in a timing."""
Timings: TypeAlias = Mapping[Where, tuple[int, int, float, float, Mapping[Where, Timing]]]

SUBJECTS = (
    # The first that matches a part of the file's path. What the benchmark does itself is not ours.
    ("/moto/", NOT_OURS),
    ("/responses/", NOT_OURS),
    ("/benchmarks/", NOT_OURS),
    ("/unittest/", NOT_OURS),
    ("/roundsman/testing/", NOT_OURS),
    ("/botocore/crt/", "botocore: signing"),
    ("/awscrt/", "botocore: signing"),
    ("/botocore/auth.py", "botocore: signing"),
    ("/botocore/signers.py", "botocore: signing"),
    ("/botocore/validate.py", "botocore: validating"),
    ("/botocore/serialize.py", "botocore: serializing"),
    ("/botocore/parsers.py", "botocore: parsing"),
    ("/botocore/regions.py", "botocore: endpoints"),
    ("/botocore/endpoint_provider.py", "botocore: endpoints"),
    ("/botocore/hooks.py", "botocore: events"),
    ("/botocore/awsrequest.py", "botocore: requests"),
    ("/botocore/httpsession.py", "botocore: requests"),
    ("/botocore/retries/", "botocore: retries"),
    ("/botocore/", "botocore: the rest"),
    ("/urllib3/", "HTTP"),
    ("/http/", "HTTP"),
    ("/email/", "HTTP"),
    ("/aws_lambda_powertools/logging/", "log lines"),
    ("/logging/", "log lines"),
    ("/aws_lambda_powertools/metrics/", "metrics"),
    ("/aws_lambda_powertools/utilities/circuit_breaker/", "an agent's guard"),
    ("/roundsman/aws/observability.py", "log lines and metrics: ours"),
    ("/roundsman/aws/guard/", "an agent's guard"),
    ("/tenacity/", "an agent's attempt"),
    ("/roundsman/aws/dynamodb/", "records: our codec"),
    ("/roundsman/model/field_table.py", "records: our codec"),
    ("/roundsman/aws/", "our adapters"),
    ("/roundsman/engine/", "our engine"),
    ("/roundsman/model/", "our model"),
    ("/roundsman/wire/", "our messages"),
    ("/roundsman/agents/", "an agent's attempt"),
    ("/roundsman/scheduler/", "our scheduler"),
    ("/roundsman/submission/", "our submission"),
)
OTHER = "other"


@dataclass(frozen=True)
class Profile:
    """What the profiler found in `ORDERS` orders."""

    timings: Mapping[str, Timings]
    """By role, as `by_role` names them."""
    counts: Counts
    """The counts of the last orders that were sent together."""

    def seconds(self) -> dict[str, dict[str, float]]:
        """Return the processor time of each role, by subject."""
        return {role: subjects_of(each, OWN_TIME) for role, each in self.timings.items()}

    def calls(self) -> dict[str, int]:
        """Return the calls of functions an order, by role, without those that are not ours."""
        return {
            role: round(_ours(subjects_of(each, CALLS)) / ORDERS)
            for role, each in self.timings.items()
        }


def measure(setting: Setting) -> Report:
    """Return the shares of the processor time, and the calls of an order: to AWS, and in all."""
    setting.say("orders under the profiler")
    alone = profile(setting.engine(), None, at_once=1)
    setting.say("orders under the profiler, in batches of ten")
    of_ten = profile(setting.engine(), BATCHES, at_once=OF_A_BATCH)
    calls_to_aws = by_role(alone.counts.dynamodb_calls), by_role(alone.counts.sqs_calls)
    return report(alone.seconds(), *calls_to_aws, alone.calls(), of_ten.calls())


def profile(endpoint: str, parameters: Mapping[str, str] | None, *, at_once: int) -> Profile:
    """Send `ORDERS` orders, so many at once, after others that warm the functions up."""
    with stack_on_the_engine(endpoint, parameters) as stack, metered(stack) as meter:
        for number in range(2):
            counted(meter, *(order(f"ord-w{number}-{each}") for each in range(at_once)))
        with profiled(meter) as profilers:
            for number in range(ORDERS // at_once):
                counts = counted(meter, *(order(f"ord-{number}-{each}") for each in range(at_once)))
                # So that no two orders meet the same second of what instances keep.
                stack.clock.now += SECOND // ORDERS
    return Profile({role: _timings(each) for role, each in profilers.items()}, counts)


def report(
    shares: Mapping[str, Mapping[str, float]],
    dynamodb: Mapping[str, int],
    sqs: Mapping[str, int],
    calls: Mapping[str, int],
    calls_of_ten: Mapping[str, int],
) -> Report:
    """Return the tables.

    `shares` are seconds by subject for each role, the others what one order calls, by role:
    DynamoDB, SQS, and functions, one order at a time and in batches of ten.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for each in shares.values():
        for subject, spent in each.items():
            sums[subject] += 0.0 if subject == NOT_OURS else spent
    del sums[NOT_OURS]
    total = sum(sums.values()) or 1.0
    largest = sorted(sums, key=lambda subject: -sums[subject])
    rows = [
        [
            subject,
            *(_percent(each.get(subject, 0.0) / total) for each in shares.values()),
            _percent(sums[subject] / total),
        ]
        for subject in largest
    ]
    ours = {role: _ours(each) / total for role, each in shares.items()}
    rows.append(["in all", *(_percent(share) for share in ours.values()), _percent(1.0)])
    called = {
        "DynamoDB": dynamodb,
        "SQS": sqs,
        "functions": calls,
        "functions, in batches of ten": calls_of_ten,
    }
    return Report(
        [
            Table(
                "Where our processor time goes, % of that of an order of four steps",
                ("", *shares, "in all"),
                rows,
            ),
            Table(
                "Calls, an order",
                ("", *shares, "in all"),
                [
                    [name, *(amount(found.get(role, 0)) for role in shares), amount(_sum(found))]
                    for name, found in called.items()
                ],
            ),
        ],
        {
            "profile": {
                "share": {subject: round(sums[subject] / total, 3) for subject in largest},
                "by_function": {role: round(share, 3) for role, share in ours.items()},
                "dynamodb_calls": {**dynamodb},
                "sqs_calls": {**sqs},
                "function_calls": _sum(calls),
                "function_calls_of_ten": _sum(calls_of_ten),
            }
        },
    )


@contextmanager
def profiled(meter: Meter) -> Iterator[Mapping[str, cProfile.Profile]]:
    """Profile each invocation; yields one profiler for each role that `by_role` knows."""
    roles = ("submission", "scheduler", "agent")
    profilers = {role: cProfile.Profile(time.thread_time) for role in roles}
    invoke = cast("Callable[..., object]", meter.stack.invoke)

    def invoked(
        function: str, event: dict[str, object], context: "Context | None" = None
    ) -> object:
        profiler = profilers[next(iter(by_role({function: 1})))]
        profiler.enable()
        try:
            return invoke(function, event, context)
        finally:
            profiler.disable()

    with patch.object(meter.stack, "invoke", invoked):
        yield profilers


def subjects_of(timings: Timings, measure: Literal[0, 2]) -> dict[str, float]:
    """Return a measure by subject: `OWN_TIME`, in seconds, or the number of `CALLS`.

    That of a function that belongs to no subject (a builtin, a library of Python) is passed on to
    its callers, in proportion to what each of them caused.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    waiting = {where: float(timing[measure]) for where, timing in timings.items()}
    for _ in range(ROUNDS):
        passed_on: defaultdict[Where, float] = defaultdict(float)
        for where, found in waiting.items():
            subject = subject_of(where)
            if subject is not None:
                spent[subject] += found
                continue
            callers = timings[where][4]
            # A wrapper that takes no time of its own goes by its calls.
            weights = {
                caller: timing[measure] or timing[CALLS] * 1e-9
                for caller, timing in callers.items()
            }
            total = sum(weights.values())
            if not total:
                spent[OTHER] += found
                continue
            for caller, weight in weights.items():
                passed_on[caller] += found * weight / total
        waiting = passed_on
    spent[OTHER] += sum(waiting.values())
    return dict(spent)


def subject_of(where: Where) -> str | None:
    """Return the subject of a function; None if its time is its callers'."""
    path = where[0].replace("\\", "/")
    return next((subject for part, subject in SUBJECTS if part in path), None)


def _timings(profiler: cProfile.Profile) -> Timings:
    # `stats` is what pstats documents as its data; typeshed does not know of it.
    return cast("Timings", vars(pstats.Stats(profiler))["stats"])


def _ours(subjects: Mapping[str, float]) -> float:
    return sum(found for subject, found in subjects.items() if subject != NOT_OURS)


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"

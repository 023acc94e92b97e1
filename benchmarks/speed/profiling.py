"""Measures where the processor time of the functions goes: function by function, and by subject.

The real handlers carry orders of four steps, on DynamoDB Local and on queues in the same process,
under Python's profiler. It measures the processor time of the thread, so no wait counts. The time
of Python's own libraries counts for the code that called them. Requests to SQS are answered in this
process, so their exchange over the network is missing; that of DynamoDB is there, without TLS.
The profiler makes calls of small functions dearer: shares are meant to be compared, not times.
"""

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, cast
from unittest.mock import patch

from benchmarks.cost.counting import by_role
from benchmarks.harness.meter import Meter, metered
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stack import stack_on_the_engine
from benchmarks.report import Report, Setting, Table, amount
from roundsman.model.instants import SECOND

if TYPE_CHECKING:
    from roundsman.testing.stack import Context

WARM_UP = 5
ORDERS = 20
ROUNDS = 50
"""How often time is passed on from a library to its callers; chains of calls are shorter."""
NOT_OURS = "not ours"

Where: TypeAlias = tuple[str, int, str]
"""A function as the profiler names it: file, line, name."""
Timing: TypeAlias = tuple[int, int, float, float]
"""Calls, calls that are not recursive, its own time, and its time with what it called; in s."""
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


def measure(setting: Setting) -> Report:
    """Return the shares of the processor time, and the calls to AWS of an order."""
    with stack_on_the_engine(setting.engine()) as stack, metered(stack) as meter:
        for number in range(WARM_UP):
            counted(meter, order(f"ord-w{number:03d}"))
        setting.say("orders under the profiler")
        with profiled(meter) as profilers:
            for number in range(ORDERS):
                counts = counted(meter, order(f"ord-{number:03d}"))
                # So that no two orders meet the same second of what instances keep.
                stack.clock.now += SECOND // ORDERS
        calls = by_role(counts.dynamodb_calls), by_role(counts.sqs_calls)
    shares = {role: subjects_of(_timings(each)) for role, each in profilers.items()}
    return report(shares, *calls)


def report(
    shares: Mapping[str, Mapping[str, float]], dynamodb: Mapping[str, int], sqs: Mapping[str, int]
) -> Report:
    """Return the tables: seconds by subject for each role, and the calls of one order by role."""
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
    rows.append(
        [
            "in all",
            *(
                _percent(sum(spent for s, spent in each.items() if s != NOT_OURS) / total)
                for each in shares.values()
            ),
            _percent(1.0),
        ]
    )
    return Report(
        [
            Table(
                "Where our processor time goes, % of that of an order of four steps",
                ("", *shares, "in all"),
                rows,
            ),
            Table(
                "Calls to AWS, an order",
                ("", *shares, "in all"),
                [
                    [name, *(amount(found.get(role, 0)) for role in shares), amount(_sum(found))]
                    for name, found in (("DynamoDB", dynamodb), ("SQS", sqs))
                ],
            ),
        ],
        {
            "profile": {
                "share": {subject: round(sums[subject] / total, 3) for subject in largest},
                "by_function": {
                    role: round(sum(spent for s, spent in each.items() if s != NOT_OURS) / total, 3)
                    for role, each in shares.items()
                },
                "dynamodb_calls": {**dynamodb},
                "sqs_calls": {**sqs},
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


def subjects_of(timings: Timings) -> dict[str, float]:
    """Return the seconds of each subject.

    The own time of a function that belongs to no subject (a builtin, a library of Python) is passed
    on to its callers, in proportion to the time that it took for each of them.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    waiting = {where: timing[2] for where, timing in timings.items()}
    for _ in range(ROUNDS):
        passed_on: defaultdict[Where, float] = defaultdict(float)
        for where, seconds in waiting.items():
            subject = subject_of(where)
            if subject is not None:
                spent[subject] += seconds
                continue
            callers = timings[where][4]
            # Own time is the measure; a wrapper that takes none of its own goes by its calls.
            weights = {caller: timing[2] or timing[0] * 1e-9 for caller, timing in callers.items()}
            total = sum(weights.values())
            if not total:
                spent[OTHER] += seconds
                continue
            for caller, weight in weights.items():
                passed_on[caller] += seconds * weight / total
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


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"

"""The simulation of a stack, and the figures and plots that were made of it."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import cast
from unittest.mock import patch

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from benchmarks.page import PAGES
from benchmarks.scale import simulated, stacks
from benchmarks.scale.lanes import DRAWS, half_let_through, let_through, share_of_fullest
from benchmarks.scale.plan import (
    AS_IT_COMES,
    AT_MOST,
    SERVICE_MS,
    SHARDS,
    limits,
    load_measured,
    shards_for,
    warm,
)
from benchmarks.scale.simulated import CURVES, IMAGES, load_simulated
from benchmarks.scale.simulation import (
    DUE,
    MOST_ORDERS,
    ORDERS,
    TASKS,
    TRIES_OF,
    VISIBILITY,
    Order,
    Outcome,
    Partition,
    Simulation,
    Stack,
    most_carried,
)
from benchmarks.speed.latency import PICK_UP, STEPS, path, waits_ms
from roundsman.aws.clients import FUNCTION_CONFIG, TRIES
from roundsman.model.instants import SECOND
from roundsman.model.redelivery import LONGEST_RUN
from roundsman_dev.template import Template, mapping_of, part

MEASURED = load_measured()
FIGURES = load_simulated()
AGAIN = 'make bench PARTS="simulation scale" simulates anew'
SMALL = Stack(
    instances={"submission": 9, "scheduler": 9, "agent": 4},
    message_ms={"submission": [40.0], "scheduler": [50.0], "agent": [100.0]},
    shards=64,
    partitions={ORDERS: 10, TASKS: 10, DUE: 10},
    partition_writes=1_000,
)
"""Its agents carry 40 orders a second; its tables have room for many more."""
IDLE = replace(SMALL, instances=dict.fromkeys(SMALL.instances, 50))
THROTTLED = replace(SMALL, partitions={ORDERS: 1, TASKS: 1, DUE: 1}, partition_writes=100)
"""Its TasksTable has the units of 14 orders a second."""


def test_below_the_limit_all_orders_are_completed_in_the_time_of_their_path() -> None:
    found = Simulation(SMALL).run(20, 50, 10, then=5)
    assert found.left == 0
    assert found.came > 700
    assert found.carried
    assert found.throttled == 0
    assert found.median_ms == pytest.approx(10 * PICK_UP + 40 + 5 * 50 + 4 * 100, rel=0.02)


def test_as_it_comes_the_path_is_that_of_the_page_on_latency_and_the_services() -> None:
    found = Simulation(stacks.as_it_comes(MEASURED)).run(20, 30)
    hops = path(STEPS, MEASURED.figures, MEASURED.prices)
    assert found.median_ms == pytest.approx(waits_ms(hops) + STEPS * SERVICE_MS, rel=0.01)


def test_above_the_limit_as_many_are_completed_as_the_instances_allow() -> None:
    found = Simulation(SMALL).run(60, 40, 20)
    assert not found.carried
    assert found.completed / found.seconds == pytest.approx(40, rel=0.02)
    assert found.fullest == "the instances of agent 1"
    assert found.used > 0.99
    assert found.p99_ms > 5 * Simulation(SMALL).run(20, 20).p99_ms


def test_the_highest_rate_is_that_of_the_pool_which_is_full_first() -> None:
    assert most_carried(SMALL, 37, 43, 60) == pytest.approx(40, rel=0.05)
    with pytest.raises(ValueError, match="does not carry 60 orders"):
        most_carried(SMALL, 60, 80, 10)


def test_messages_that_wait_come_together_and_take_less_time() -> None:
    together = replace(SMALL, message_ms={**SMALL.message_ms, "agent": [100.0, 60.0]})
    found = Simulation(together).run(60, 30, 15)
    assert found.carried, "four instances of two messages each carry 66 a second"
    assert not Simulation(together).run(75, 20, 10).carried


def test_a_hot_key_throttles_although_the_index_has_room() -> None:
    small = replace(SMALL, partition_writes=100)
    spread = Simulation(small).run(30, 20)
    hot = Simulation(replace(small, shards=1)).run(30, 20)
    wanted, room = 4 * 30, 10 * small.partition_writes
    assert wanted < room / 5
    assert spread.throttled == 0
    assert hot.throttled > 0.01
    assert hot.fullest == f"a partition of {DUE}"
    assert not hot.carried


def test_which_lanes_share_a_partition_is_drawn_by_the_seed() -> None:
    partitions = {ORDERS: 100, TASKS: 100, DUE: 10}
    few = replace(IDLE, shards=16, partitions=partitions, partition_writes=100)
    used = [Simulation(few, seed).run(30, 30).used for seed in range(3)]
    shares = [share_of_fullest(16, 10, seed) for seed in range(3)]
    assert len(set(shares)) == 3
    assert used == pytest.approx([30 * share / 100 for share in shares], rel=0.2)


def test_a_partition_keeps_the_units_of_one_second_and_no_more() -> None:
    partition = Partition(TASKS, rate=100, left=0)
    assert not partition.has(51, 500)
    assert partition.has(50, 500)
    partition.take(50)
    assert not partition.has(101, 1_000 * SECOND)
    assert partition.has(100, 1_000 * SECOND)
    assert partition.taken == 50


def burst(stack: Stack) -> Outcome:
    """Twice as many orders as its TasksTable takes for 10 s, and half an hour for them to end."""
    return Simulation(stack).run(28, 10, then=1_800)


def nothing_is_lost(found: Outcome) -> bool:
    return found.left == 0 and found.throttled > 0


def test_throttled_messages_come_again_and_nothing_is_lost() -> None:
    found = burst(THROTTLED)
    assert nothing_is_lost(found)
    assert found.longest_ms > VISIBILITY


def test_without_redelivery_it_shows_that_orders_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simulation, "_hide", lambda *_: None)
    found = burst(THROTTLED)
    assert found.throttled > 0
    assert not nothing_is_lost(found)


SUBMISSION, DECISION = 0, 1
TOOK = 10 * PICK_UP + 40 + 5 * 50 + 4 * 100


@pytest.mark.parametrize(
    ("hop", "refused", "least", "most"),
    [
        pytest.param(DECISION, 0, TOOK, TOOK, id="none"),
        pytest.param(DECISION, TRIES - 1, TOOK, TOOK + 3 * SECOND, id="tried again at once"),
        pytest.param(DECISION, TRIES, VISIBILITY, VISIBILITY + TOOK, id="comes again"),
        pytest.param(
            DECISION,
            2 * TRIES,
            TOOK + 2 * VISIBILITY + SECOND,
            TOOK + 3 * VISIBILITY - LONGEST_RUN + 3 * SECOND,
            id="comes again later",
        ),
        pytest.param(SUBMISSION, 1, VISIBILITY, VISIBILITY + TOOK, id="a transaction"),
    ],
)
def test_when_a_throttled_write_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, hop: int, refused: int, least: float, most: float
) -> None:
    """The first order's write at `hop` is refused so often; the others are let through."""
    left, writes = [refused], Simulation._writes

    def refusing(self: Simulation, order: Order) -> bool:
        if order.came == 0 and order.hop == hop and left[0]:
            left[0] -= 1
            return False
        return writes(self, order)

    monkeypatch.setattr(Simulation, "_writes", refusing)
    found = Simulation(IDLE).run(5, 10, then=300)
    assert left == [0]
    assert found.left == 0
    assert least - 1 <= found.longest_ms <= most + 1


class Refusal(BytesIO):
    """The body of a response, as urllib3 gives it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def tries(operation: str, code: str, **arguments: object) -> int:
    """How often botocore sends a request that is refused with this code."""
    client = boto3.client("dynamodb", config=FUNCTION_CONFIG)
    sent = []

    def refuse(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        sent.append(request)
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}"}
        return AWSResponse(request.url, 400, HTTPHeaders(), Refusal(json.dumps(body).encode()))

    answer = cast("Callable[..., None]", refuse)  # its stubs know no hook that answers
    client.meta.events.register("before-send.dynamodb", answer)
    with patch("time.sleep"), pytest.raises(ClientError, match=code):
        getattr(client, operation)(**arguments)
    return len(sent)


def test_botocore_tries_a_throttled_write_again_and_a_cancelled_transaction_never() -> None:
    put = {"TableName": "tasks", "Item": {}}
    for code in ("ThrottlingException", "ProvisionedThroughputExceededException"):
        assert tries("put_item", code, **put) == TRIES_OF["scheduler"]
    cancelled = tries("transact_write_items", "TransactionCanceledException", TransactItems=[])
    assert cancelled == TRIES_OF["submission"]


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = (Simulation(THROTTLED, seed).run(28, 20) for seed in (1, 1, 2))
    assert first == again != other


def test_a_run_is_bounded_and_one_that_shows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="are more than"):
        Simulation(SMALL).run(1_000, MOST_ORDERS / 1_000 + 1)
    with pytest.raises(ValueError, match="simulate for longer"):
        Simulation(SMALL).run(10, 0.5)


def default(file: str, parameter: str) -> int:
    document = Template.read(stacks.ROOT / "stacks" / file).document
    return int(str(mapping_of(part(document, "Parameters")[parameter])["Default"]))


def test_the_stack_as_it_comes_has_the_defaults_of_the_templates() -> None:
    for role, file, of in (
        ("submission", "engine.yaml", "Submission"),
        ("scheduler", "engine.yaml", "Scheduler"),
        ("agent", "agent.yaml", ""),
    ):
        settings = AS_IT_COMES[role]
        assert settings.instances == default(file, f"{of}Concurrency")
        assert settings.batch == default(file, f"{of}BatchSize")
        assert settings.memory == default(file, f"{of}Memory")
        assert AT_MOST[role].instances == max(stacks.concurrencies())
    assert default("engine.yaml", "DueShards") == SHARDS
    assert default("engine.yaml", "SchedulerVisibilitySeconds") * SECOND == VISIBILITY
    assert default("engine.yaml", "SubmissionVisibilitySeconds") * SECOND == VISIBILITY


def test_a_limit_alone_is_as_it_comes_and_everything_else_at_most() -> None:
    usual, most = stacks.as_it_comes(MEASURED), stacks.at_most(MEASURED)
    assert stacks.alone("tasks", MEASURED) == replace(
        most, partitions={**most.partitions, TASKS: usual.partitions[TASKS]}
    )
    agents = stacks.alone("agents", MEASURED)
    assert agents.instances == {**most.instances, "agent": usual.instances["agent"]}
    assert stacks.alone("lanes", MEASURED) == replace(most, shards=SHARDS)
    with pytest.raises(KeyError):
        stacks.alone("marks", MEASURED)


SIMULATED = [limit for limit in limits(MEASURED) if limit.known == "simulated"]
PLANNED = {
    **{limit.id: limit.as_it_comes for limit in SIMULATED},
    "planned": simulated.end_of_planned(MEASURED),
    "at most": simulated.end_at_most(MEASURED),
}


def test_everything_that_is_simulated_has_its_figure() -> None:
    assert FIGURES.carried.keys() == PLANNED.keys()
    assert len(SIMULATED) == 7


@pytest.mark.parametrize("name", PLANNED)
def test_the_plan_and_the_simulation_agree(name: str) -> None:
    assert FIGURES.carried[name] == pytest.approx(PLANNED[name], rel=0.1)


def test_of_a_thousand_draws_990_let_through_what_the_plan_says() -> None:
    planned = let_through(16, 4, 1_000)
    worse = [seed for seed in range(DRAWS) if 1_000 / share_of_fullest(16, 4, seed) < planned]
    assert len(worse) <= DRAWS / 100
    assert planned < half_let_through(16, 4, 1_000) < 1_000, "which is what even keys would do"


def test_the_page_says_what_the_draws_let_through_and_how_far_plan_and_simulation_differ() -> None:
    page = " ".join(PAGES[1].read_text(encoding="utf-8").split())
    half, most = half_let_through(16, 4, 1_000), let_through(16, 4, 1_000)
    assert f"let through {half:.0f} or more, and 99 of 100 at least {most:.0f}." in page
    differ = max(abs(found / PLANNED[name] - 1) for name, found in FIGURES.carried.items())
    assert f"differ by {differ:.0%}".replace("%", " %") in page


def test_a_partition_that_has_more_lanes_is_full_sooner() -> None:
    one_lane = 1_000 / share_of_fullest(1, 10_000, seed=0)
    assert one_lane == pytest.approx(1_000 / 3), "the open lane of one shard, alone"
    assert share_of_fullest(16, 1, seed=0) == 4, "all that an order writes"


def test_more_shards_where_lanes_would_share_a_full_partition() -> None:
    quotas = MEASURED.quotas
    for rate in (1_000, 2_500, 3_000):
        shards = shards_for(rate, quotas)
        partitions = warm(7 * rate, quotas) // 1_000
        assert let_through(shards, partitions, 1_000) >= rate
    assert shards_for(3_000, quotas) == 128
    assert let_through(64, 42, 1_000) < 3_000


@pytest.mark.parametrize(("name", "rate"), [("default", 40), ("default", 85)])
def test_the_stored_figures_are_what_the_code_finds(name: str, rate: int) -> None:
    [curve] = [one for one in CURVES if one.name == name]
    [stored] = [point for point in FIGURES.curves[name] if point.rate == rate]
    assert simulated.point(stacks.as_it_comes(MEASURED), curve, rate) == stored, AGAIN


def test_the_stored_curves_are_of_the_rates_that_are_drawn() -> None:
    rates: Mapping[str, list[float]] = {
        name: [point.rate for point in points] for name, points in FIGURES.curves.items()
    }
    assert rates == {curve.name: [*curve.rates] for curve in CURVES}


def test_the_plots_are_of_the_stored_figures_and_say_what_they_show() -> None:
    page = PAGES[1].read_text(encoding="utf-8")
    for name, plot in simulated.plots(FIGURES).items():
        assert (IMAGES / name).read_text(encoding="utf-8") == plot, AGAIN
        assert f"](../images/{name})" in page
        root = ET.fromstring(plot)  # noqa: S314  # our own
        found = {child.tag.rpartition("}")[2]: child.text for child in root}
        assert found["title"]
        assert "orders a second" in str(found["desc"])
        assert root.get("aria-labelledby") == "t d"

"""An agent's function as Lambda calls it: where it notes its calls, and where it makes no note."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from roundsman import Step
from roundsman.aws.clock import now
from roundsman.model.task import Effect
from roundsman.wire.messages import AgentRequest, read_request
from tests.contract.circuits import fresh_circuits
from tests.support.agent_samples import returning
from tests.support.agent_world import (
    TABLE,
    Aws,
    Context,
    World,
    event,
    greet,
    made_aws,
    made_world,
    request,
    written,
)

__all__ = ["fresh_circuits"]

greet_or_wave = replace(greet, agent="", agents=("greeter", "waver"))
NOTE = "calls#greeter#ord-1/greet/perform"


@pytest.fixture(scope="module")
def aws(session_without_real_aws: None) -> Iterator[Aws]:
    with made_aws() as found:
        yield found


@pytest.fixture
def world(aws: Aws, monkeypatch: pytest.MonkeyPatch, fresh_circuits: None) -> Iterator[World]:
    with made_world(aws, monkeypatch) as found:
        yield found


def asked() -> AgentRequest:
    numbered = read_request(request(lock="7f3a-0c1d.1.5"))
    return replace(numbered, sent_at=now(), complete_by=now() + 30_000)


def handle(world: World, asked: AgentRequest) -> None:
    assert world.agent.lambda_handler(event(asked.body()), Context()) == {"batchItemFailures": []}


def rows(world: World) -> dict[str, dict[str, object]]:
    found = world.dynamodb.scan(TableName=TABLE)["Items"]
    return {row["ControlId"]["S"]: {**row} for row in found}


@pytest.mark.parametrize(
    ("step", "noted"), [(greet_or_wave, True), (greet, False)], ids=["several agents", "one"]
)
def test_calls_of_a_step_with_several_agents_are_noted_and_no_others(
    world: World, step: Step, noted: bool
) -> None:
    world.agent.performs(step)(returning("hello"))
    handle(world, asked())
    assert world.replies()[0].result == "hello"
    assert (NOTE in rows(world)) == noted


def test_a_request_that_is_given_back_closes_its_key_and_a_copy_of_it_is_not_called(
    world: World,
) -> None:
    called: list[object] = []
    world.agent.performs(greet_or_wave)(called.append)
    late = replace(asked(), sent_at=now() - 30_000, complete_by=now() + 5_000)
    handle(world, late)
    handle(world, replace(late, complete_by=now() + 30_000))
    assert [reply.effect for reply in world.replies()] == [Effect.NONE, Effect.NONE]
    assert not called
    handle(world, replace(asked(), lock="7f3a-0c1d.1.7"))
    assert len(called) == 1


def test_a_table_that_cannot_be_written_keeps_a_noted_call_from_being_made_and_is_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[object] = []
    world.agent.performs(greet_or_wave)(called.append)
    world.dynamodb.delete_table(TableName=TABLE)
    handle(world, asked())
    assert not called
    assert any("CallNotesFailed" in line for line in written(capsys))

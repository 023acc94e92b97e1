"""The example's agents, as deployed, on their real services."""

import importlib
import sys
from collections.abc import Iterator

import pytest

from roundsman.agents.agent import Handler
from roundsman.aws.clock import now
from roundsman.aws.settings import SettingMissing
from roundsman.model.events import Outcome
from roundsman_testing.remote_services import RemoteServices
from tests.support.agent_world import (
    TABLE,
    Aws,
    Context,
    World,
    event,
    failed,
    made_aws,
    made_world,
    request,
)
from tests.unit.remote_services.client import Client


@pytest.fixture(scope="module")
def aws(session_without_real_aws: None) -> Iterator[Aws]:
    with made_aws() as found:
        yield found


@pytest.fixture
def world(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with made_world(aws, monkeypatch) as found:
        yield found


AGENTS = {
    "inventory": ("reserve_stock", "reservationId"),
    "payment": ("charge_card", "chargeId"),
    "shipping": ("create_shipment", "shipmentId"),
    "mail": ("send_confirmation", None),
}
UNDONE = [name for name, (_, field_name) in AGENTS.items() if field_name]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServices]:
    with RemoteServices() as started:
        monkeypatch.setenv("SERVICE_URL", started.url)
        yield started


def deployed(agent: str) -> Handler:
    """The function's own module, loaded as in a new instance."""
    name = f"functions.agents.{agent}.app"
    sys.modules.pop(name, None)
    handler: Handler = importlib.import_module(name).handler
    return handler


def asked(agent: str, operation: str = "perform", **changes: object) -> str:
    step, _ = AGENTS[agent]
    present = now()
    return request(
        step=step,
        operation=operation,
        idempotency_key=f"ord-1/{step}/{operation}",
        perform_key=f"ord-1/{step}/perform" if operation == "undo" else None,
        complete_by=present + 30_000,
        sent_at=present,
        **changes,
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_the_examples_agent_has_its_effect_once_however_often_its_request_comes(
    world: World, services: RemoteServices, agent: str
) -> None:
    handler, (step, field_name) = deployed(agent), AGENTS[agent]
    body = asked(agent)
    assert failed(handler(event(body), Context())) == []
    assert failed(handler(event(body, body), Context())) == []
    replies = world.replies()
    assert [reply.outcome for reply in replies] == [Outcome.SUCCEEDED] * 3
    [effect] = Client(services.url).ledger()
    assert (effect["key"], effect["effects"], effect["calls"]) == (f"ord-1/{step}/perform", 1, 3)
    for reply in replies:
        assert reply.result == ({field_name: effect["result"][field_name]} if field_name else None)


@pytest.mark.parametrize("agent", UNDONE)
@pytest.mark.parametrize("performed", [True, False], ids=["performed", "never performed"])
def test_the_examples_agent_undoes_by_the_performs_key_also_what_never_happened(
    world: World, services: RemoteServices, agent: str, performed: bool
) -> None:
    handler, (step, _) = deployed(agent), AGENTS[agent]
    if performed:
        handler(event(asked(agent)), Context())
    handler(event(asked(agent, "undo")), Context())
    handler(event(asked(agent)), Context())
    outcomes = [reply.outcome for reply in world.replies()]
    assert outcomes[-2:] == [Outcome.SUCCEEDED, Outcome.PERMANENT]  # the key is spent
    effect = Client(services.url).entry(f"ord-1/{step}/perform")
    assert (effect["undone"], effect["effects"]) == (True, int(performed))


@pytest.mark.parametrize(
    ("agent", "operation", "status", "error"),
    [
        ("inventory", "POST /reservations", 409, "OutOfStock"),
        ("payment", "POST /charges", 402, "CardDeclined"),
        ("shipping", "POST /shipments", 422, "AddressUndeliverable"),
    ],
)
def test_the_examples_agent_passes_a_refusal_on_by_its_type(
    world: World, services: RemoteServices, agent: str, operation: str, status: int, error: str
) -> None:
    refusal: dict[str, object] = {
        "operation": operation,
        "status": status,
        "body": {"error": error},
    }
    assert Client(services.url).set_faults(refusal).status < 300
    deployed(agent)(event(asked(agent)), Context())
    [reply] = world.replies()
    assert reply.outcome is Outcome.PERMANENT
    assert reply.error is not None
    assert reply.error.type == error


def test_the_payment_agent_asks_for_its_charge_before_it_charges_again(
    world: World, services: RemoteServices
) -> None:
    handler, client = deployed("payment"), Client(services.url)
    handler(event(asked("payment", outcome_unknown=True)), Context())
    handler(event(asked("payment", outcome_unknown=True)), Context())
    first, second = world.replies()
    assert (first.outcome, second.outcome) == (Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    assert first.result == second.result
    calls = [f"{call['method']} {call['status']}" for call in client.send("GET", "/_calls").rows]
    assert calls == ["GET 404", "POST 201", "GET 200"]


def test_the_payment_agent_finds_the_charge_whose_answer_was_lost(
    world: World, services: RemoteServices
) -> None:
    client = Client(services.url)
    client.set_faults({"operation": "POST /charges", "loseAnswer": True})
    deployed("payment")(event(asked("payment")), Context())
    [reply] = world.replies()
    entry = client.entry("ord-1/charge_card/perform")
    assert (reply.outcome, reply.result) == (Outcome.SUCCEEDED, entry["result"])
    assert entry["effects"] == 1


def test_the_payment_agent_spends_the_key_of_a_charge_that_was_never_made(
    world: World, services: RemoteServices
) -> None:
    handler = deployed("payment")
    handler(event(asked("payment", "undo", outcome_unknown=True)), Context())
    handler(event(asked("payment")), Context())
    assert [reply.outcome for reply in world.replies()] == [Outcome.SUCCEEDED, Outcome.PERMANENT]
    entry = Client(services.url).entry("ord-1/charge_card/perform")
    assert (entry["undone"], entry["effects"]) == (True, 0)


def test_the_deployed_agent_notes_in_the_control_table_what_it_read(
    world: World, services: RemoteServices
) -> None:
    deployed("payment")(event(asked("payment"), queue="s-PaymentUrgentRequestQueue"), Context())
    item = world.dynamodb.get_item(TableName=TABLE, Key={"ControlId": {"S": "marks"}})["Item"]
    assert "payment/urgent" in item


def test_the_deployed_agent_answers_without_a_control_table(
    world: World, services: RemoteServices
) -> None:
    world.dynamodb.delete_table(TableName=TABLE)
    assert failed(deployed("payment")(event(asked("payment")), Context())) == []
    assert [reply.outcome for reply in world.replies()] == [Outcome.SUCCEEDED]


@pytest.mark.parametrize(
    "name", ["CONTROL_TABLE", "REPLY_QUEUE_URL", "REJECTED_QUEUE_URL", "ALERT_TOPIC_ARN"]
)
def test_a_setting_that_is_missing_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(SettingMissing, match=f"the environment variable {name} is not set"):
        deployed("payment")(event(), Context())


def test_a_function_is_imported_without_any_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONTROL_TABLE", "REPLY_QUEUE_URL", "REJECTED_QUEUE_URL", "SERVICE_URL"):
        monkeypatch.delenv(name, raising=False)
    for agent in AGENTS:
        assert callable(deployed(agent))

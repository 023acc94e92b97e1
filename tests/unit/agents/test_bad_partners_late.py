"""A remote service that answers late, or twice, or does it and loses the answer.

As in test_bad_partners.py, at a real one on loopback; docs/reference/agent.md has the table.
"""

from roundsman.agents.agent import NoReply
from roundsman.model.task import StepError
from roundsman_testing.remote_services import RemoteServices
from tests.support.partner_world import Partner
from tests.support.remote_server import CREATED, Server, answer, calls, refusal
from tests.unit.remote_services.client import Client

CHARGE = "ord-1/charge_card/perform"


def test_the_answer_comes_after_complete_by(services: RemoteServices) -> None:
    """The agent is silent, whatever came: its right to speak is over. The next one finds it."""
    partner = Partner(services.url)
    partner.afterwards = lambda: partner.world.wait(331)
    assert partner.answer(partner.request()) == NoReply("the attempt ended 1 s after complete-by")
    partner.world.inspect()
    assert partner.record().error == StepError("Overdue", "no answer in time; 5 min late when seen")
    partner.afterwards = lambda: None
    partner.succeeds()
    assert effects(services) == {CHARGE: 1}


def test_the_answer_was_lost(services: RemoteServices) -> None:
    """The charge was made and nobody heard of it: the next try has the same key, so once."""
    faults(services, {"operation": "POST /charges", "loseAnswer": True, "times": 1})
    partner = Partner(services.url)
    partner.succeeds()
    assert effects(services) == {CHARGE: 1}
    assert partner.performs == 2


def test_every_answer_of_an_attempt_was_lost(services: RemoteServices) -> None:
    faults(services, {"operation": "POST /charges", "loseAnswer": True, "times": 3})
    partner = Partner(services.url)
    partner.fails("POST failed: the connection was closed before a response (3 tries)")
    partner.world.wait_until(partner.record().not_before)
    partner.succeeds()
    assert effects(services) == {CHARGE: 1}


def test_the_answer_was_lost_and_a_probe_finds_the_effect(server: Server) -> None:
    """It is asked for by its key before anything is repeated, and not performed again."""
    server.answers = [None, answer("200 OK", b'{"chargeId": "c-1"}')]
    partner = Partner(server.url, probed=True)
    partner.succeeds()
    key = "ord-1%2Fcharge_card%2Fperform"
    assert calls(server) == ["POST /charges", f"GET /charges/{key}"]
    assert partner.performs == 1


def test_the_answer_was_lost_and_a_probe_finds_nothing(server: Server) -> None:
    server.answers = [None, refusal("404 Not Found", "NotCharged"), CREATED]
    partner = Partner(server.url, probed=True)
    partner.succeeds()
    assert partner.performs == 2


def test_the_probe_cannot_know(server: Server) -> None:
    """Nothing is performed again as long as nobody knows, and no order is failed for it."""
    server.answers = [None]
    server.always = answer("404 Not Found")
    partner = Partner(server.url, probed=True)
    partner.fails_for_now(
        "WrongAddress",
        "the probe of charge_card: the address answers 404 to GET without the service's error "
        "(3 tries)",
    )
    assert partner.performs == 1


def test_a_request_comes_twice(services: RemoteServices) -> None:
    """Two copies of one request, one key: one effect, and the second answer changes nothing."""
    partner = Partner(services.url)
    request = partner.request()
    first, second = partner.answer(request), partner.answer(request)
    partner.hear(first)
    task = partner.world.task
    partner.hear(second)
    assert partner.world.task is task
    assert effects(services) == {CHARGE: 1}


def test_the_key_was_used_for_something_else(services: RemoteServices) -> None:
    """Not retried: the service has another body under this key, and only a person can say why."""
    partner = Partner(services.url)
    partner.post_charge(CHARGE, "5.00")
    partner.fails_for_good("KeyReused", "POST answered 422")


def faults(services: RemoteServices, rule: dict[str, object]) -> None:
    assert Client(services.url).set_faults(rule).status == 200


def effects(services: RemoteServices) -> dict[str, int]:
    """How often each key really had its effect."""
    return {entry["key"]: entry["effects"] for entry in Client(services.url).ledger()}

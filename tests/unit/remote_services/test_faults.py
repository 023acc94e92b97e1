"""Faults set over HTTP: what a caller sees, and what happened all the same."""

import http.client
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from roundsman_testing.remote_services import FaultsInvalid, RemoteServices
from roundsman_testing.remote_services.fault_rules import read_rules
from roundsman_testing.remote_services.faults import dice
from roundsman_testing.remote_services.hold import TooManyHanging, WaitingRoom
from tests.unit.remote_services.client import PATIENCE_SECONDS, Client, Got

PERFORM = "ord-1/charge_card/perform"
UNDO = "ord-1/charge_card/undo"


def test_an_error_status_has_no_effect(client: Client) -> None:
    client.set_faults({"service": "charges", "status": 503, "retryAfter": 2, "times": 1})
    got = client.charge(PERFORM)
    assert (got.status, got.headers["Retry-After"]) == (503, "2")
    assert (client.entry(PERFORM)["effects"], client.entry(PERFORM)["calls"]) == (0, 1)
    assert client.charge(PERFORM).status == 201


def test_a_faults_body_is_sent_as_it_is_given(client: Client) -> None:
    client.set_faults({"status": 429, "body": {"error": "SlowDown"}})
    assert client.charge(PERFORM).body == {"error": "SlowDown"}


@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        ({"service": "payment"}, {"charge", "refund"}),
        ({"service": "charges"}, {"charge"}),
        ({"operation": "POST /refunds"}, {"refund"}),
        ({"operation": "perform"}, {"charge", "message"}),
        ({"service": "payment", "operation": "undo"}, {"refund"}),
        ({"orderId": "ord-1"}, {"charge", "refund"}),
        ({}, {"charge", "refund", "message"}),
    ],
)
def test_a_rule_meets_the_calls_it_names(
    client: Client, rule: dict[str, object], hit: set[str]
) -> None:
    client.set_faults({**rule, "status": 500})
    answers = {
        "charge": client.charge(PERFORM),
        "refund": client.refund(PERFORM, UNDO),
        "message": client.message("ord-2/send_confirmation/perform", "ord-2"),
    }
    assert {name for name, got in answers.items() if got.status == 500} == hit


def test_a_rule_skips_the_first_calls_and_is_spent_after_its_times(client: Client) -> None:
    client.set_faults({"service": "charges", "status": 503, "after": 2, "times": 2})
    statuses = [client.charge(f"key-{number}").status for number in range(6)]
    assert statuses == [201, 201, 503, 503, 201, 201]
    (counts,) = client.send("GET", "/_faults").body["counts"]
    assert counts == {"matched": 6, "applied": 2, "struck": 2}


def test_the_first_rule_that_strikes_hides_the_call_from_the_others(client: Client) -> None:
    client.set_faults({"status": 500, "times": 1}, {"status": 502, "times": 1})
    assert [client.charge(PERFORM).status for _ in range(3)] == [500, 502, 201]


def test_an_error_rate_strikes_its_share_and_the_same_calls_each_time(client: Client) -> None:
    rule: dict[str, object] = {"errorRate": 0.3, "seed": 7}

    def statuses() -> list[int]:
        client.set_faults(rule)
        client.send("DELETE", "/_ledger")
        return [client.charge(f"key-{number}").status for number in range(100)]

    first = statuses()
    assert set(first) == {201, 503}
    assert 20 <= first.count(503) <= 40
    assert statuses() == first


def test_dice_differ_by_seed_key_and_draw() -> None:
    thrown = {dice(1, "a", 1), dice(2, "a", 1), dice(1, "b", 1), dice(1, "a", 2)}
    assert len(thrown) == 4
    assert all(0 <= each < 1 for each in thrown)


def test_a_lost_answer_has_had_its_effect(client: Client) -> None:
    client.set_faults({"service": "charges", "loseAnswer": True, "times": 1})
    with pytest.raises(http.client.RemoteDisconnected):
        client.charge(PERFORM)
    assert client.entry(PERFORM)["effects"] == 1
    assert client.charge(PERFORM).status == 201
    assert client.entry(PERFORM)["effects"] == 1


def test_a_hang_has_no_effect_and_does_not_stand_in_the_way_of_a_retry(
    services: RemoteServices, client: Client
) -> None:
    client.set_faults({"service": "charges", "hang": True, "times": 1})
    with pytest.raises(TimeoutError):
        Client(services.url, timeout=0.05).charge(PERFORM)
    client.wait_until("hanging", 1)
    assert client.entry(PERFORM)["effects"] == 0
    assert client.charge(PERFORM).status == 201


def test_what_hung_is_delivered_when_the_faults_are_lifted(client: Client) -> None:
    client.set_faults({"service": "charges", "hang": True})
    with ThreadPoolExecutor(1) as pool:
        late = _hang(pool, client)
        assert client.refund(PERFORM, UNDO).status == 201
        client.send("DELETE", "/_faults")
        assert late.result().error == "KeyUndone"
    assert client.entry(PERFORM)["effects"] == 0


def test_a_hang_of_some_seconds_goes_on_by_itself(client: Client) -> None:
    client.set_faults({"service": "charges", "hang": 0.01})
    assert client.charge(PERFORM).status == 201


def test_a_lost_answer_can_be_silent_instead_of_closed(
    services: RemoteServices, client: Client
) -> None:
    client.set_faults({"service": "charges", "loseAnswer": True, "hang": True})
    with pytest.raises(TimeoutError):
        Client(services.url, timeout=0.05).charge(PERFORM)
    client.wait_until("hanging", 1)
    assert client.entry(PERFORM)["effects"] == 1


def test_resetting_the_ledger_lets_go_what_hangs_without_an_effect_in_the_new_one(
    client: Client,
) -> None:
    client.set_faults({"service": "charges", "hang": True})
    with ThreadPoolExecutor(1) as pool:
        late = _hang(pool, client)
        client.send("DELETE", "/_ledger")
        assert late.result().status == 201
    assert client.ledger() == []


def test_a_slow_call_is_in_progress_to_the_next_with_its_key(client: Client) -> None:
    client.set_faults({"service": "charges", "latencyMs": 600_000, "times": 1})
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.charge, PERFORM)
        client.wait_until("slow", 1)
        assert client.charge(PERFORM).error == "InProgress"
        client.send("DELETE", "/_faults")
        assert slow.result().status == 201
    assert client.entry(PERFORM)["effects"] == 1


def test_hangs_are_bounded() -> None:
    hold = WaitingRoom(max_hanging=0)
    with pytest.raises(TooManyHanging):
        hold.hang(hold.ticket(), None)


def test_a_release_before_the_wait_is_not_missed() -> None:
    hold = WaitingRoom()
    ticket = hold.ticket()
    hold.release()
    assert hold.hang(ticket, None)


def test_stopping_does_not_wait_for_what_hangs() -> None:
    services = RemoteServices().start()
    client = Client(services.url)
    client.set_faults({"hang": True})
    with ThreadPoolExecutor(1) as pool:
        late = _hang(pool, client)
        services.stop()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            late.result()
    services.stop()


def test_what_waits_when_the_server_stops_never_has_its_effect(services: RemoteServices) -> None:
    application = services.application
    client = Client(services.url)
    client.set_faults({"hang": True, "orderId": "ord-1"}, {"latencyMs": 600_000})
    with ThreadPoolExecutor(2) as pool:
        waiting = [_hang(pool, client), pool.submit(client.charge, "slow", "ord-2")]
        client.wait_until("slow", 1)
        services.stop()
        assert all(call.exception() for call in waiting)
    assert not application.hold.hang(application.hold.ticket(), 0.001)
    application.hold.release()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while application.hold.hanging + application.hold.slow:
        assert time.monotonic() < deadline
    described = [entry for entry in application.effects() if isinstance(entry, dict)]
    assert [entry["effects"] for entry in described] == [0, 0]


def test_a_truncated_answer_breaks_off_after_the_effect(client: Client) -> None:
    client.set_faults({"truncate": True})
    with pytest.raises(http.client.IncompleteRead):
        client.charge(PERFORM)
    with pytest.raises(http.client.IncompleteRead):
        client.remove("reservations", "r", "u")
    assert client.entry(PERFORM)["effects"] == 1


def test_an_answer_can_be_no_json(client: Client) -> None:
    client.set_faults({"nonJson": True})
    got = client.charge(PERFORM)
    assert (got.status, got.headers["Content-Type"]) == (201, "text/html")
    assert client.entry(PERFORM)["effects"] == 1


def test_an_answer_can_be_huge(client: Client) -> None:
    client.set_faults({"hugeBody": 200_000})
    assert len(client.charge(PERFORM).raw) == 200_000


def test_a_redirect_has_no_effect(client: Client) -> None:
    client.set_faults({"redirect": "http://127.0.0.1:9/elsewhere"})
    got = client.charge(PERFORM)
    assert (got.status, got.headers["Location"]) == (307, "http://127.0.0.1:9/elsewhere")
    assert client.entry(PERFORM)["effects"] == 0


def test_rules_that_cannot_be_used_are_refused_with_every_problem_and_change_nothing(
    client: Client,
) -> None:
    client.set_faults({"status": 500})
    got = client.set_faults(
        {"service": "bank", "status": 99, "latencyMs": -1},
        {"errorRate": 1.5, "times": 0},
        {"speed": "slow"},
        {"status": 503, "loseAnswer": True},
        {"hang": True, "retryAfter": 3},
        {"service": "mail", "operation": "POST /charges", "status": 500},
        {"service": "mail"},
        {"redirect": "http://a\r\nb"},
    )
    assert (got.status, got.error) == (400, "FaultsInvalid")
    named = [problem.split(":")[0] for problem in got.body["problems"]]
    assert named == [
        "rules[0].service",
        "rules[0].status",
        "rules[0].latencyMs",
        "rules[1].errorRate",
        "rules[1].times",
        "rules[2].speed",
        "rules[3]",
        "rules[4].retryAfter",
        "rules[5]",
        "rules[6]",
        "rules[7].redirect",
    ]
    assert client.charge(PERFORM).status == 500


@pytest.mark.parametrize(
    "document", [None, [], {}, {"rules": {}}, {"rules": [3]}, {"rules": [], "more": 1}]
)
def test_a_document_without_a_list_of_rules_is_refused(document: object) -> None:
    with pytest.raises(FaultsInvalid):
        read_rules(document)  # type: ignore[arg-type]  # what a client may send


def test_faults_that_are_not_json_are_refused(client: Client) -> None:
    assert client.send("PUT", "/_faults", b"{").error == "BodyNotJson"


def test_faults_are_shown_as_given_and_can_be_lifted(client: Client) -> None:
    rule = {"service": "mail", "status": 500, "hang": False}
    assert client.set_faults(rule).body["rules"] == [rule]
    assert client.send("GET", "/_faults").body["rules"] == [rule]
    assert client.send("DELETE", "/_faults").status == 204
    assert client.send("GET", "/_faults").body["rules"] == []


def test_half_a_request_is_no_request(services: RemoteServices, client: Client) -> None:
    host, port = client.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as half:
        head = f"POST /charges HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {PERFORM}\r\n"
        half.sendall(f'{head}Content-Length: 100\r\n\r\n{{"orderId"'.encode())
        half.shutdown(socket.SHUT_WR)
        assert half.recv(100) == b""
    assert client.ledger() == []


def _hang(pool: ThreadPoolExecutor, client: Client) -> Future[Got]:
    late = pool.submit(client.charge, PERFORM)
    client.wait_until("hanging", 1)
    return late

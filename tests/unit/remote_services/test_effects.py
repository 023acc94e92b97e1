"""Effects happen once for each key, and never after their undo."""

import threading
from concurrent.futures import ThreadPoolExecutor

from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.remote_services.contract import OPERATIONS
from roundsman_testing.remote_services.ledger import ServiceCall, ServiceLedger
from tests.unit.remote_services.client import Client, Got

PERFORM = "ord-1/charge_card/perform"
UNDO = "ord-1/charge_card/undo"
CHARGE = next(operation for operation in OPERATIONS if operation.name == "POST /charges")


def test_a_repeated_key_gives_the_same_answer_and_no_second_effect(client: Client) -> None:
    first = client.charge(PERFORM)
    second = client.charge(PERFORM)
    assert (second.status, second.body) == (first.status, first.body)
    entry = client.entry(PERFORM)
    assert (entry["effects"], entry["calls"]) == (1, 2)
    assert entry["result"] == first.body
    assert len(entry["at"]) == 1


def test_other_keys_are_other_effects(client: Client) -> None:
    assert client.charge("a").body != client.charge("b").body


def test_the_same_key_at_another_service_is_another_key(client: Client) -> None:
    assert client.charge("a").status == 201
    assert client.reserve("a").status == 201


def test_a_key_with_another_body_is_refused_and_has_no_effect(client: Client) -> None:
    client.charge(PERFORM)
    got = client.charge(PERFORM, amount="99.00")
    assert (got.status, got.error) == (422, "KeyReused")
    assert client.entry(PERFORM)["effects"] == 1


def test_an_undo_key_with_another_perform_key_is_refused(client: Client) -> None:
    client.refund(PERFORM, UNDO)
    assert client.refund("ord-2/charge_card/perform", UNDO).error == "KeyReused"
    assert client.charge("ord-2/charge_card/perform", "ord-2").status == 201


def test_the_order_of_a_bodys_fields_does_not_matter(client: Client) -> None:
    client.charge(PERFORM)
    body = {"token": "tok_visa", "currency": "EUR", "amount": "39.80", "orderId": "ord-1"}
    assert client.send("POST", "/charges", body, PERFORM).status == 201


def test_no_perform_lands_after_its_undo(client: Client) -> None:
    client.refund(PERFORM, UNDO)
    got = client.charge(PERFORM)
    assert (got.status, got.error) == (409, "KeyUndone")
    entry = client.entry(PERFORM)
    assert (entry["effects"], entry["undone"]) == (0, True)


def test_a_repeated_perform_is_not_answered_as_done_once_it_was_undone(client: Client) -> None:
    client.charge(PERFORM)
    client.refund(PERFORM, UNDO)
    assert client.charge(PERFORM).error == "KeyUndone"
    assert client.entry(PERFORM)["effects"] == 1


def test_an_undo_happens_once_whichever_keys_ask_for_it(client: Client) -> None:
    client.charge(PERFORM)
    first = client.refund(PERFORM, UNDO)
    assert client.refund(PERFORM, UNDO).body == first.body
    assert client.refund(PERFORM, f"{UNDO}/2").status == 201
    assert client.entry(UNDO)["effects"] == 1
    assert client.entry(f"{UNDO}/2")["effects"] == 0


def test_a_refusal_is_not_remembered_so_that_funds_may_arrive(client: Client) -> None:
    declined = {"status": 402, "body": {"error": "CardDeclined"}, "times": 1}
    client.set_faults({"operation": "POST /charges", **declined})
    assert client.charge(PERFORM).error == "CardDeclined"
    assert client.charge(PERFORM).status == 201


def test_a_refused_order_may_be_corrected_under_its_key(client: Client) -> None:
    assert client.charge(PERFORM, token="tok_declined").status == 402
    assert client.entry(PERFORM)["effects"] == 0
    assert client.charge(PERFORM).status == 201


def test_a_question_leaves_no_trace_in_the_ledger(client: Client) -> None:
    client.charged(PERFORM)
    assert client.ledger() == []
    client.charge(PERFORM)
    client.charged(PERFORM)
    [entry] = client.ledger()
    assert (entry["effects"], entry["calls"]) == (1, 1)
    assert [call["status"] for call in client.send("GET", "/_calls").rows] == [404, 201, 200]


def test_a_refused_charge_is_not_found(client: Client) -> None:
    client.charge(PERFORM, token="tok_declined")
    assert client.charged(PERFORM).error == "NotCharged"


def test_a_charge_that_was_refunded_is_not_found(client: Client) -> None:
    client.charge(PERFORM)
    client.refund(PERFORM, UNDO)
    assert client.charged(PERFORM).error == "NotCharged"


def test_a_charge_whose_key_was_spent_before_it_came_is_not_found(client: Client) -> None:
    client.refund(PERFORM, UNDO)
    client.charge(PERFORM)
    assert client.charged(PERFORM).error == "NotCharged"


def test_nobody_can_know_the_outcome_of_a_charge_that_is_still_worked_on() -> None:
    ledger = ServiceLedger()
    question = next(operation for operation in OPERATIONS if operation.kind == "probe")
    perform = ServiceCall(CHARGE, PERFORM, PERFORM, "ord-1", "a hash")
    probe = ServiceCall(question, PERFORM, PERFORM, "ord-1", "a hash")
    ledger.begin(perform)
    during = ledger.begin(probe)
    assert during is not None
    assert during.status == 409
    ledger.settle(perform, None, 1)
    afterwards = ledger.begin(probe)
    assert afterwards is not None
    assert afterwards.status == 200


def test_a_service_that_forgot_a_key_knows_nothing_of_its_charge(client: Client) -> None:
    client.charge(PERFORM)
    client.set_faults({"operation": "GET /charges", "forgetKey": True, "times": 1})
    assert client.charged(PERFORM).error == "NotCharged"
    client.charged("a key that was never seen")
    assert [entry["key"] for entry in client.ledger()] == [PERFORM]


def test_faults_of_the_service_strike_its_questions_too(client: Client) -> None:
    client.charge(PERFORM)
    client.set_faults({"service": "payment", "status": 503, "times": 1})
    assert client.charged(PERFORM).status == 503
    client.set_faults({"operation": "perform", "status": 503}, {"operation": "undo", "status": 503})
    assert client.charged(PERFORM).status == 200


def test_threads_that_race_with_one_key_have_one_effect(client: Client) -> None:
    racers = 16
    barrier = threading.Barrier(racers)

    def race(_racer: int) -> Got:
        barrier.wait(timeout=20)
        return client.charge(PERFORM)

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(race, range(racers)))
    done = [got.body["chargeId"] for got in answers if got.status == 201]
    others = {got.error for got in answers if got.status != 201}
    assert len(set(done)) == 1
    assert others <= {"InProgress"}
    entry = client.entry(PERFORM)
    assert (entry["effects"], entry["calls"]) == (1, racers)


def test_performs_that_race_their_undo_never_stand_alone(client: Client) -> None:
    keys = [f"ord-{number}/charge_card/perform" for number in range(20)]
    barrier = threading.Barrier(2)

    def perform() -> None:
        for key in keys:
            barrier.wait(timeout=20)
            client.charge(key)

    def undo() -> None:
        for key in keys:
            barrier.wait(timeout=20)
            client.refund(key, key.replace("perform", "undo"))

    with ThreadPoolExecutor(2) as pool:
        for racer in [pool.submit(perform), pool.submit(undo)]:
            racer.result()
    effects = {entry["key"]: entry["effects"] for entry in client.ledger()}
    assert all(effects[key] == effects[key.replace("perform", "undo")] for key in keys)


def test_a_second_call_while_the_first_is_worked_on_is_in_progress() -> None:
    ledger = ServiceLedger()
    call = ServiceCall(CHARGE, PERFORM, PERFORM, "ord-1", "a hash")
    assert ledger.begin(call) is None
    second = ledger.begin(call)
    assert second is not None
    assert second.status == 409
    assert isinstance(second.body, dict)
    assert second.body["error"] == "InProgress"
    ledger.settle(call, None, 1)
    third = ledger.begin(call)
    assert third is not None
    assert third.status == 201


def test_an_undo_overtakes_the_perform_that_is_worked_on() -> None:
    ledger = ServiceLedger()
    refund = next(operation for operation in OPERATIONS if operation.resource == "refunds")
    perform = ServiceCall(CHARGE, PERFORM, PERFORM, "ord-1", "a hash")
    undo = ServiceCall(refund, UNDO, PERFORM, "ord-1", "a hash")
    ledger.begin(perform)
    ledger.begin(undo)
    assert ledger.settle(undo, None, 1).status == 201
    assert ledger.settle(perform, None, 2).status == 409
    effects = [entry["effects"] for entry in ledger.effects() if isinstance(entry, dict)]
    assert effects == [0, 0]


def test_a_call_that_is_given_up_has_no_effect_and_frees_its_key() -> None:
    ledger = ServiceLedger()
    call = ServiceCall(CHARGE, PERFORM, PERFORM, "ord-1", "a hash")
    ledger.begin(call)
    ledger.abandon(call)
    assert ledger.begin(call) is None


def test_a_second_effect_of_one_key_would_be_seen(client: Client) -> None:
    client.charge(PERFORM)
    client.set_faults({"service": "payment", "forgetKey": True, "times": 1})
    client.charge(PERFORM)
    entry = client.entry(PERFORM)
    assert entry["effects"] == 2
    assert len(entry["at"]) == 2


def test_the_ledger_can_be_asked_for_one_order(client: Client) -> None:
    client.charge(PERFORM)
    client.charge("ord-2/charge_card/perform", "ord-2")
    client.refund("ord-2/charge_card/perform", "ord-2/charge_card/undo")
    assert [entry["key"] for entry in client.ledger("?orderId=ord-2")] == [
        "ord-2/charge_card/perform",
        "ord-2/charge_card/undo",
    ]
    assert client.send("GET", "/_ledger?orderid=ord-2").error == "QueryInvalid"


def test_an_undo_belongs_to_the_order_of_its_perform(client: Client) -> None:
    client.charge("a key of another shape", "ord-9")
    client.refund("a key of another shape", "its undo")
    assert client.entry("its undo")["orderId"] == "ord-9"
    assert client.entry("its undo")["performKey"] == "a key of another shape"


def test_resetting_the_ledger_forgets_effects_keys_and_calls(client: Client) -> None:
    client.refund(PERFORM, UNDO)
    assert client.send("DELETE", "/_ledger").status == 204
    assert client.ledger() == []
    assert client.send("GET", "/_calls").rows == []
    assert client.charge(PERFORM).status == 201


def test_the_log_of_calls_shows_the_key_on_the_wire(client: Client) -> None:
    client.charge(PERFORM)
    client.remove("reservations", "ord-1/reserve_stock/perform", "ord-1/reserve_stock/undo")
    first, second = client.send("GET", "/_calls?orderId=ord-1").rows
    assert (first["key"], first["status"]) == (PERFORM, 201)
    assert second["path"] == "/reservations/ord-1%2Freserve_stock%2Fperform"


def test_no_order_contents_are_shown_by_the_ledger_or_the_log(client: Client) -> None:
    client.charge(PERFORM, token="tok_secret")
    client.ship("ord-1/create_shipment/perform")
    shown = client.send("GET", "/_ledger").raw + client.send("GET", "/_calls").raw
    assert b"tok_secret" not in shown
    assert b"Reader" not in shown


def test_effects_are_timed_by_the_clock_that_is_passed() -> None:
    with RemoteServices(clock=lambda: 1_700_000_000_000) as services:
        client = Client(services.url)
        client.charge(PERFORM)
        assert client.entry(PERFORM)["at"] == [1_700_000_000_000]


def test_the_callback_tokens_of_accepted_calls_can_be_asked_for() -> None:
    with RemoteServices(stand_ins=["compliance"]) as services:
        client = Client(services.url)
        review = {"orderId": "ord-1", "callbackToken": "first"}
        client.send("POST", "/compliance", {**review, "refuse": "Closed"}, "key-1")
        assert client.send("POST", "/compliance", review, "key-1").status == 201
        again = client.send("POST", "/compliance", {**review, "callbackToken": "2"}, "key-1")
        assert again.status == 201
        kept = client.send("GET", "/_callbacks?orderId=ord-1").rows
        assert [(each["service"], each["token"]) for each in kept] == [
            ("compliance", "first"),
            ("compliance", "2"),
        ]
        assert client.ledger()[0]["effects"] == 1
        services.application.reset()
        assert client.send("GET", "/_callbacks").rows == []

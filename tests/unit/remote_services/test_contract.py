"""The calls and answers of the contract, over HTTP."""

from urllib.parse import quote

import pytest

from roundsman_testing.remote_services import RemoteServices
from tests.unit.remote_services.client import Client, charge_body, shipment_body

PERFORM = "ord-1/a_step/perform"
UNDO = "ord-1/a_step/undo"


def test_a_reservation_is_made_and_names_itself(client: Client) -> None:
    got = client.reserve(PERFORM)
    assert got.status == 201
    assert list(got.body) == ["reservationId"]


def test_a_charge_is_made_and_names_itself(client: Client) -> None:
    got = client.charge(PERFORM)
    assert got.status == 201
    assert list(got.body) == ["chargeId"]


def test_a_shipment_is_made_and_names_itself(client: Client) -> None:
    got = client.ship(PERFORM)
    assert got.status == 201
    assert list(got.body) == ["shipmentId"]


def test_a_message_is_accepted_without_a_body(client: Client) -> None:
    got = client.message(PERFORM)
    assert (got.status, got.raw) == (202, b"")
    assert client.entry(PERFORM)["effects"] == 1


def test_a_reservation_is_removed_by_the_key_that_made_it(client: Client) -> None:
    client.reserve(PERFORM)
    assert client.remove("reservations", PERFORM, UNDO).status == 204
    assert client.entry(UNDO)["effects"] == 1


def test_a_shipment_is_removed_by_the_key_that_made_it(client: Client) -> None:
    client.ship(PERFORM)
    assert client.remove("shipments", PERFORM, UNDO).status == 204
    assert client.entry(UNDO)["effects"] == 1


def test_a_charge_is_refunded_by_the_key_that_made_it(client: Client) -> None:
    client.charge(PERFORM)
    got = client.refund(PERFORM, UNDO)
    assert got.status == 201
    assert list(got.body) == ["refundId"]
    assert client.entry(UNDO)["effects"] == 1


def test_a_charge_can_be_asked_for_by_its_key(client: Client) -> None:
    made = client.charge(PERFORM)
    got = client.charged(PERFORM)
    assert (got.status, got.body) == (200, made.body)


def test_what_was_never_charged_is_not_found(client: Client) -> None:
    got = client.charged(PERFORM)
    assert (got.status, got.error) == (404, "NotCharged")


@pytest.mark.parametrize(
    ("resource", "status"), [("reservations", 204), ("shipments", 204), ("refunds", 201)]
)
def test_undoing_what_never_existed_is_fine_and_changes_nothing(
    client: Client, resource: str, status: int
) -> None:
    if resource == "refunds":
        got = client.refund(PERFORM, UNDO)
        assert "refundId" in got.body
    else:
        got = client.remove(resource, PERFORM, UNDO)
    assert got.status == status
    assert client.entry(UNDO)["effects"] == 0


def test_a_declined_token_is_402(client: Client) -> None:
    got = client.charge(PERFORM, token="tok_declined")
    assert (got.status, got.error) == (402, "CardDeclined")


def test_a_sku_that_is_out_of_stock_is_409(client: Client) -> None:
    got = client.reserve(PERFORM, sku="OUT-7")
    assert (got.status, got.error) == (409, "OutOfStock")


def test_an_undeliverable_country_is_422(client: Client) -> None:
    got = client.ship(PERFORM, country="XX")
    assert (got.status, got.error) == (422, "AddressUndeliverable")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/reservations"),
        ("DELETE", "/reservations/a%2Fb"),
        ("POST", "/charges"),
        ("POST", "/refunds"),
        ("POST", "/shipments"),
        ("DELETE", "/shipments/a%2Fb"),
        ("POST", "/messages"),
    ],
)
def test_every_call_needs_an_idempotency_key(client: Client, method: str, path: str) -> None:
    got = client.send(method, path, {})
    assert (got.status, got.error) == (400, "IdempotencyKeyMissing")
    assert client.ledger() == []


@pytest.mark.parametrize("key", ["k" * 513, "caf\u00e9", "tab\there"])
def test_a_key_that_is_no_plain_text_is_refused(client: Client, key: str) -> None:
    got = client.charge(key)
    assert (got.status, got.error) == (400, "IdempotencyKeyInvalid")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"orderId": ""}, "orderId"),
        ({"orderId": 7}, "orderId"),
        ({"amount": 39.8}, "amount"),
        ({"amount": "-1.00"}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"currency": "eur"}, "currency"),
        ({"token": None}, "token"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(
    client: Client, changes: dict[str, object], path: str
) -> None:
    got = client.send("POST", "/charges", {**charge_body(), **changes}, PERFORM)
    assert (got.status, got.error) == (400, "BodyInvalid")
    (problem,) = got.body["problems"]
    assert problem.startswith(f"{path}: must be ")


def test_every_problem_of_a_body_is_named_at_once(client: Client) -> None:
    body = {"lines": [{"sku": "", "quantity": True}, "a line"], "address": {"country": "Belgium"}}
    got = client.send("POST", "/shipments", body, PERFORM)
    named = [problem.split(":")[0] for problem in got.body["problems"]]
    assert named == [
        "orderId",
        "address.name",
        "address.street",
        "address.city",
        "address.postalCode",
        "address.country",
        "lines[0].sku",
        "lines[0].quantity",
        "lines[1]",
    ]


@pytest.mark.parametrize(
    ("path", "body", "path_named"),
    [
        ("/reservations", {"orderId": "o", "lines": []}, "lines"),
        ("/reservations", {"orderId": "o", "lines": [{"sku": "A", "quantity": 0}]}, "lines[0]"),
        ("/refunds", {}, "chargeKey"),
        ("/shipments", {**shipment_body(), "address": "home"}, "address"),
        ("/messages", {"orderId": "o"}, "template"),
    ],
)
def test_each_resource_checks_its_own_body(
    client: Client, path: str, body: object, path_named: str
) -> None:
    got = client.send("POST", path, body, PERFORM)
    assert got.status == 400
    assert got.body["problems"][0].startswith(path_named)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"amount": NaN}'])
def test_a_body_that_is_not_json_is_refused_in_words(client: Client, raw: bytes) -> None:
    got = client.send("POST", "/charges", raw, PERFORM)
    assert (got.status, got.error) == (400, "BodyNotJson")


def test_a_body_that_is_no_object_is_refused(client: Client) -> None:
    assert client.send("POST", "/charges", [charge_body()], PERFORM).error == "BodyInvalid"


def test_a_body_over_the_limit_is_refused(client: Client) -> None:
    got = client.charge(PERFORM, token="t" * 8_000_000)
    assert (got.status, got.error) == (413, "BodyTooLarge")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/nothing", 404),
        ("GET", "/charges", 405),
        ("GET", "/charges/", 404),
        ("GET", "/charges/not/encoded", 404),
        ("GET", "/reservations/a%2Fb", 405),
        ("DELETE", "/charges/a%2Fb", 405),
        ("DELETE", "/charges", 405),
        ("DELETE", "/reservations", 405),
        ("DELETE", "/reservations/", 404),
        ("DELETE", "/reservations/not/encoded", 404),
        ("PATCH", "/_ledger", 405),
        ("GET", "/_nothing", 404),
    ],
)
def test_what_is_not_in_the_contract_is_refused(
    client: Client, method: str, path: str, status: int
) -> None:
    got = client.send(method, path, {}, PERFORM)
    assert got.status == status
    assert client.ledger() == []


def test_the_index_lists_every_call(client: Client) -> None:
    index = client.send("GET", "/").body
    assert "DELETE /reservations" in index["calls"]
    assert "GET /charges" in index["calls"]
    assert "PUT /_faults" in index["admin"]


@pytest.mark.parametrize("name", ["booking", "payment", "shipments"])
def test_a_stand_in_may_have_a_name_of_the_example(name: str) -> None:
    with RemoteServices(stand_ins=[name]) as services:
        client = Client(services.url)
        assert client.send("POST", f"/{name}", {"orderId": "ord-1"}, PERFORM).status == 201
        refused = client.send("POST", f"/{name}", {"orderId": "ord-2", "refuse": "No"}, "other")
        assert (refused.status, refused.error) == (422, "No")
        assert client.send("DELETE", f"/{name}/{quote(PERFORM, safe='')}", {}, UNDO).status == 204


def test_a_stand_in_refuses_an_order_that_names_it() -> None:
    with RemoteServices(stand_ins=["payment", "stock"]) as services:
        client = Client(services.url)
        order = {"orderId": "ord-1", "order": {"lines": [{"note": "refused-by-payment"}]}}
        assert client.send("POST", "/stock", order, PERFORM).status == 201
        refused = client.send("POST", "/payment", order, PERFORM)
        assert (refused.status, refused.error) == (422, "Refused")


def test_a_service_that_is_not_known_yet_is_looked_for() -> None:
    names = ["booking"]
    with RemoteServices(stand_ins=names, find_stand_ins=lambda: names) as services:
        client = Client(services.url)
        assert client.send("POST", "/rooms", {"orderId": "ord-1"}, PERFORM).status == 404
        names.append("rooms")
        assert client.send("POST", "/rooms", {"orderId": "ord-1"}, PERFORM).status == 201
        assert client.send("POST", "/cars", {"orderId": "ord-1"}, PERFORM).status == 404

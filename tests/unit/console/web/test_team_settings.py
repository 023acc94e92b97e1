"""What `roundsman ui --serve` needs before it serves anybody."""

from collections.abc import Mapping

import pytest

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.web.access.identity import Trust
from roundsman_console.faces.web.access.team import TeamSettings, read_settings
from tests.support.load_balancer import ISSUER, SIGNER

OPTIONS: Mapping[str, str | None] = {
    "signer": SIGNER,
    "issuer": ISSUER,
    "group": "on-call",
    "public_url": "https://console.example.com",
}
CLAIMS = {"group_claim": "groups", "name_claim": "sub"}


def refused(serve_on: str, options: Mapping[str, str | None], words: str) -> None:
    with pytest.raises(ConsoleError) as raised:
        read_settings(serve_on, options, CLAIMS)
    assert words in str(raised.value)
    assert raised.value.code == USAGE


def test_the_settings_are_those_of_the_options() -> None:
    claims = {"group_claim": "teams", "name_claim": "email"}
    assert read_settings("10.0.1.7:8080", OPTIONS, claims) == TeamSettings(
        "10.0.1.7",
        8080,
        "https://console.example.com",
        "eu-central-1",
        Trust(SIGNER, ISSUER, "on-call", "teams", "email"),
    )


def test_the_client_may_be_left_out() -> None:
    for given, client in ((None, ""), ("", ""), ("console", "console")):
        options = {**OPTIONS, "client": given}
        assert read_settings("127.0.0.1:0", options, CLAIMS).trust.client == client


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("nothing", [None, ""])
def test_nobody_is_served_without_each_of_them(name: str, nothing: str | None) -> None:
    option = f"--{name.replace('_', '-')}"
    refused("127.0.0.1:0", {**OPTIONS, name: nothing}, f"--serve needs {option} too")


def test_all_that_are_missing_are_named_at_once() -> None:
    refused("127.0.0.1:0", {}, "--serve needs --signer, --issuer, --group, --public-url too")


@pytest.mark.parametrize(
    ("serve_on", "host", "port"),
    [
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:8080", "::1", 8080),
        ("10.0.1.7:65535", "10.0.1.7", 65_535),
    ],
)
def test_the_address_to_listen_on_is_an_ip_address_with_a_port(
    serve_on: str, host: str, port: int
) -> None:
    found = read_settings(serve_on, OPTIONS, CLAIMS)
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    "serve_on",
    [
        *("", "8080", ":8080", "127.0.0.1", "localhost:8080", "127.0.0.1:", "127.0.0.1:x"),
        *("127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:8080/", "127.1:8080", "127.0.0.1:٨"),
    ],
)
def test_another_address_to_listen_on_is_refused(serve_on: str) -> None:
    refused(serve_on, OPTIONS, "--serve must be an IP address and a port")


@pytest.mark.parametrize(
    "signer",
    [
        "console",
        SIGNER + "/listener",
        SIGNER.replace("/app/", "/net/"),
        SIGNER.replace("aws", "aws-us-gov", 1),
        SIGNER.replace("111122223333", ""),
        SIGNER.replace("eu-central-1", "evil.example/x"),
        f" {SIGNER}",
        f"{SIGNER}\n",
    ],
)
def test_a_signer_that_is_no_load_balancer_is_refused(signer: str) -> None:
    refused("127.0.0.1:0", {**OPTIONS, "signer": signer}, "--signer must be the ARN")


def test_an_issuer_without_https_is_refused() -> None:
    options = {**OPTIONS, "issuer": "http://login.example.com"}
    refused("127.0.0.1:0", options, "--issuer must be an https address")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://console.example.com/", "https://console.example.com"),
        ("https://Console.Example.com:443", "https://console.example.com"),
        ("https://console.example.com:8443", "https://console.example.com:8443"),
    ],
)
def test_the_public_address_is_as_a_browser_writes_it(url: str, address: str) -> None:
    assert read_settings("127.0.0.1:0", {**OPTIONS, "public_url": url}, CLAIMS).address == address


@pytest.mark.parametrize(
    "url",
    [
        *("console.example.com", "http://console.example.com", "https://", "https:///x"),
        *("https://c.example/path", "https://c.example?x", "https://c.example#x", "https://a b"),
        *("https://amy@c.example", "https://c.example:x", "https://c.example\n", "https://*"),
    ],
)
def test_another_public_address_is_refused(url: str) -> None:
    refused("127.0.0.1:0", {**OPTIONS, "public_url": url}, "--public-url must be an https address")


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(ConsoleError, match="names of claims"):
        read_settings("127.0.0.1:0", OPTIONS, {**CLAIMS, name: ""})

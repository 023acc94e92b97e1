"""Instants on pages: in relative words, with the instant on hover, also inside of sentences."""

import re

import pytest

from roundsman.model.instants import MINUTE, SECOND, iso
from roundsman_console.faces.web import times
from roundsman_console.faces.web.time_style import style_of
from roundsman_console.faces.web.times import HOUR, ago, dated, left, sentence, until, words
from tests.moto.orders import order
from tests.support.machine_world import T0
from tests.web.browsers import Browser, text_of


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: T0)


def at(away: int) -> str:
    return f"{iso(T0 + away)[:19]}Z"


def plain(text: str) -> str:
    """The text of a sentence, as it is read."""
    return re.sub(r"<[^>]*>", "", sentence(text))


def test_an_instant_is_relative_and_has_itself_on_hover() -> None:
    shown = ago(T0 - 90 * SECOND)
    assert text_of(shown) == "90 s ago"
    assert f'title="{iso(T0 - 90 * SECOND)}"' in shown
    assert text_of(until(T0 + 5 * MINUTE)) == "in 5 min"
    assert text_of(until(T0 - 5 * MINUTE)) == "5 min ago"
    assert text_of(left(T0 + 5 * MINUTE)) == "for another 5 min"
    assert ago(None) == until(None) == ""


def test_a_long_time_has_no_more_digits_than_are_of_use() -> None:
    assert words("ago", -400) == "just now"
    assert words("until", 400) == "in 0 s"
    assert words("ago", -(9 * HOUR + 5 * MINUTE)) == "9 h 5 min ago"
    assert words("ago", -(10 * HOUR + 5 * MINUTE)) == "10 h ago"
    assert words("until", 89 * 24 * HOUR) == "in 89 days"


def test_an_instant_in_a_sentence_becomes_words_that_fit_the_word_before_it() -> None:
    two = 2 * MINUTE
    for text, wanted in {
        f"held since {at(-two)}: tests": "held for 2 min: tests",
        f"it needs a person since {at(-two)} (2 min ago): no": "it needs a person for 2 min: no",
        f"attempt 2, at {at(two)} (in 2 min).": "attempt 2, in 2 min.",
        f"complete at {at(two)}, in 2 min": "complete in 2 min",
        f"complete by {at(-two)}, 2 min ago": "complete (due 2 min ago)",
        f"its next pass, by {at(two)}.": "its next pass, within 2 min.",
        f"held by amy until {at(two)}: tests": "held by amy for another 2 min: tests",
        f"held until {at(-two)}": "held until 2 min ago",
        f"erased on {iso(T0 - two)} by ops": "erased 2 min ago by ops",
        f"counted {at(-two)}, 3 of 4 failed": "counted 2 min ago, 3 of 4 failed",
    }.items():
        assert plain(text) == wanted


def test_a_word_that_is_no_part_of_an_instant_stays_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"it failed from {at(-HOUR)} to {at(-MINUTE)}; before {at(-HOUR)}; sent at {at(0)}"
    assert plain(text) == "it failed from 1 h ago to 60 s ago; before 1 h ago; sent just now"
    monkeypatch.setattr(times, "time_style", lambda: "utc")
    hour, minute, now = (at(-one).replace("T", " ")[:-1] for one in (HOUR, MINUTE, 0))
    assert plain(text) == (
        f"it failed from {hour} UTC to {minute} UTC; before {hour} UTC; sent at {now} UTC"
    )


@pytest.mark.parametrize("style", ["relative", "utc", "local"])
def test_a_sentence_about_days_ago_has_the_instants_themselves(
    style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "time_style", lambda: style)
    shown = dated(f"<b> worse since {at(-HOUR)}: 3 of 4, from {at(-MINUTE)}.")
    hour, minute = (at(-one).replace("T", " ")[:-1] for one in (HOUR, MINUTE))
    assert text_of(shown) == f"<b> worse since {hour} UTC : 3 of 4, from {minute} UTC ."
    assert "<b>" not in shown


def test_text_around_an_instant_is_inert() -> None:
    shown = sentence(f"<b>\x1b[31m at {at(0)} <script>")
    assert shown.startswith("&lt;b&gt;?[31m <time ")
    assert shown.endswith("</time> &lt;script&gt;")


def test_what_only_looks_like_an_instant_stays() -> None:
    assert plain("at 2027-13-45T99:00:00Z") == "at 2027-13-45T99:00:00Z"
    assert plain("no instant in it") == "no instant in it"


def test_the_style_of_a_cookie_is_one_of_those_that_there_are() -> None:
    assert style_of("roundsman_times=utc") == "utc"
    assert style_of('a={"b":1}; roundsman_times=local; c=d') == "local"
    for none in ("", "roundsman_times=", "roundsman_times=odd", "xroundsman_times=utc", "utc"):
        assert style_of(none) == "relative"


def listed(browser: Browser) -> str:
    """The list of orders, below the strip: the strip always says how long ago it was read."""
    return browser.page("/orders").partition("Tenant")[2]


@pytest.mark.exhaustive
def test_the_chosen_style_is_kept_and_each_page_is_in_it(browser: Browser) -> None:
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    assert "just now" in listed(browser)
    answer = browser.client.get(
        "/times?as=utc&back=/orders%3Fstate%3DCompleted", follow_redirects=False
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == "/orders?state=Completed"
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert "just now" not in listed(browser)
    assert "2027-01-15 08:00:00 UTC" in listed(browser)
    browser.client.get("/times?as=local")
    assert "2027-01-15 08:00:00 UTC" in listed(browser), "only a script knows the zone"
    browser.client.get("/times?as=odd")
    assert "just now" not in listed(browser), "a style that there is not changes nothing"
    browser.client.get("/times?as=relative")
    assert "just now" in listed(browser)


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example/x",
        "https://evil.example",
        "/\\evil.example",
        "evil",
        "",
        "/a%0d%0aSet-Cookie:x=y",
    ],
)
def test_the_switch_leads_back_to_pages_of_the_console_only(browser: Browser, back: str) -> None:
    answer = browser.client.get(f"/times?as=utc&back={back}", follow_redirects=False)
    assert answer.headers["location"] == "/"
    assert answer.headers.get_list("set-cookie")[0].startswith("roundsman_times=utc;")


def test_the_switch_needs_the_cookie_of_the_console(browser: Browser) -> None:
    browser.client.cookies.clear()
    assert browser.client.get("/times?as=utc").status_code == 403


def test_instants_in_utc_have_the_word_that_fits_before_them(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "time_style", lambda: "utc")
    shown = iso(T0)[:19].replace("T", " ") + " UTC"
    assert text_of(ago(T0)) == text_of(until(T0)) == shown
    assert text_of(left(T0)) == f"until {shown}"
    for text, wanted in {
        f"held since {at(0)} (2 min ago): tests": f"held since {shown}: tests",
        f"attempt 2, at {at(0)} (in 2 min).": f"attempt 2, at {shown}.",
        f"complete by {at(0)}, 2 min ago": f"complete by {shown}",
        f"held by amy until {at(0)}: tests": f"held by amy until {shown}: tests",
        f"erased on {iso(T0)} by ops": f"erased at {shown} by ops",
    }.items():
        assert plain(text) == wanted

"""The page of an incident: from the alert to the last order, and after the all-clear."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest

from roundsman.aws.dynamodb.control import KEEP_MARKS_FOR
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.pages.incident import still_fails
from roundsman_console.faces.web.readings.released import ReleasedHere
from roundsman_console.facts.group.effects import effects_words, group_effects, order_effects
from roundsman_console.facts.group.reading import OVER_WITH_ORDERS
from roundsman_console.facts.group.repair import repair_of
from roundsman_console.facts.orders.counts import Count
from roundsman_console.inspector import Inspector
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.bulk.conftest import PARAMETERS
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project
from tests.support.kept_stack import KeptStack
from tests.web.browsers import Browser
from tests.web.declined import DECLINES, kept_with_declined
from tests.web.hand import Hand

NO_REFUND = {"operation": "POST /refunds", "status": 400}
LATER: dict[str, object] = {"operation": "POST /charges", "status": 503, "retryAfter": 600}
NAMES = [f"ord-{n}" for n in range(2001, 2009)]
LATE = "ord-2901"
MOST_CLICKS, MOST_TYPED = 9, 60


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all tests of a module, with few shards."""
    with deployed_project(roundsman_services, roundsman_clock, PARAMETERS) as world:
        yield world


@pytest.fixture(scope="module")
def with_declined(one_world: Stack, session_without_real_aws: None) -> KeptStack:
    """The deployment with eight orders that were declined by mistake."""
    return kept_with_declined(one_world, NAMES)


@pytest.fixture
def declined(browser: Browser, with_declined: KeptStack) -> str:
    """The group of eight orders that were declined by mistake."""
    with_declined.go_back()
    world = browser.operator.world
    world.faults(DECLINES)
    return str(world.task(NAMES[0]).failure)


@pytest.mark.exhaustive
def test_a_night_takes_nine_clicks_and_sixty_characters(browser: Browser, declined: str) -> None:
    """docs/runbook/night.md: hold, repair, release, resubmit, and see that it is over."""
    world = browser.operator.world
    person = Hand(browser).opens("/")
    person.finds(declined)
    assert "8 orders undone: CardDeclined" in person.text
    assert "No effect remains." in person.text
    person.sends("Hold payment", Reason="declines every card")
    assert "payment would make no new call for 30 min: orders that need it wait" in person.text
    person.sends("Hold now")
    assert "Done: payment is held for 30 min." in person.text
    world.pass_time(KEEP_MARKS_FOR // SECOND)  # every function has read the hold
    world.submit(order(LATE))
    world.run()
    assert world.task(LATE).state is TaskState.RETRY
    world.faults()  # the acquirer puts its rule right
    person.sends("Release payment")
    person.sends("Release now")
    assert "Done: payment is released, and takes work again." in person.text
    person.sends("Resubmit 8 orders", Reason="declined by mistake")
    assert "8 of 8 orders are eligible; nothing was sent." in person.text
    person.sends("Resubmit all now")
    assert "is stored: the supervisor begins within a minute." in person.text
    world.pass_time(600)
    person.follows("Follow b-")
    assert "8 of 8 orders with a result" in person.text
    assert person.clicks <= MOST_CLICKS
    assert person.typed <= MOST_TYPED
    assert {world.task(name).state for name in (*NAMES, LATE)} == {TaskState.COMPLETED}
    assert world.effects(LATE) == ALL_EFFECTS
    twice = {**ALL_EFFECTS, "inventory perform": 2, "inventory undo": 1}
    assert [world.effects(name) for name in NAMES] == [twice] * len(NAMES)


@pytest.mark.exhaustive
def test_the_page_stays_after_the_all_clear_also_from_the_bulk_run(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.faults()
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Hold payment", Reason="it declines every card")
    person.sends("Hold now")
    person.sends("Release payment", Reason="the rule is right")
    person.sends("Release now")
    person.sends("Resubmit 8 orders", Reason="declined by mistake")
    person.sends("Resubmit all now")
    world.pass_time(1_200)
    assert browser.operator.reads("groups", "ls")["groups"] == []
    person.follows("Follow b-")
    person.follows(declined)
    text = person.text
    assert "It is over: no order is in it now. Orders of order_fulfilment at charge_card" in text
    assert "charge_card: failed for good: CardDeclined: POST answered 402" in text
    hold, release, resubmit = (
        text.index("hold of payment for 30 min by"),
        text.index("release of payment by"),
        text.index("resubmit of 8 orders by"),
    )
    assert hold < release < resubmit
    assert "declined by mistake. It is finished: 8 Completed. b-" in text
    assert set(re.findall("/commands/[a-z-]+", person.html)) == {"/commands/groups-note"}
    assert re.search(r"ord-\d+ failed at [0-9:]{8} UTC", text)
    assert "held payment for 30 min" in text, "the marks of the drawing"
    person.sends("Write the note", Note="It was the acquirer.")
    assert "It was the acquirer." in person.text
    assert "It is over: no order is in it now." in person.text


@pytest.mark.exhaustive
def test_a_group_that_ended_without_a_bulk_run_is_a_page_and_not_an_error(
    browser: Browser, declined: str
) -> None:
    browser.operator.world.faults()
    for name in NAMES:
        assert browser.operator.asks("resubmit", name, "--again").exit_code == 0
    browser.operator.world.pass_time(900)
    page = browser.page(f"/groups/{declined}")
    assert "it is over, or there never was one" in page
    assert "its id is f- and eight of" in browser.page("/groups/f-1", 404)


@pytest.mark.exhaustive
def test_a_run_whose_orders_are_erased_or_gone_still_says_that_it_is_over(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.faults()
    go = ("--again", "--reason", "x", "--go", "--yes", "--no-wait")
    browser.operator.types("resubmit", "--group", declined, *go)
    world.pass_time(900)
    for table, key in (("TasksTableName", "TaskId"), ("OrdersTableName", "OrderID")):
        for name in NAMES:
            world.dynamodb.delete_item(TableName=world.stack.outputs[table], Key={key: {"S": name}})
    page = browser.page(f"/groups/{declined}")
    assert "What its orders failed with is no longer stored." in page
    assert "resubmit of 8 orders by" in page


def test_the_effects_of_all_orders_are_said_first(browser: Browser, declined: str) -> None:
    page = browser.page(f"/groups/{declined}")
    assert (
        "No effect remains. reserve_stock: undone in 8 orders. charge_card: refused in 8 orders, "
        "and its undo was sent to be safe. All orders of the group were read." in page
    )
    assert page.index("No effect remains.") < page.index("1. Stop")
    assert "undone: reserve_stock; refused, and its undo was sent to be safe: charge_card" in page


def test_orders_that_were_not_read_are_not_said_to_have_no_effect(
    browser: Browser, declined: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = browser.inspector.group(declined)
    assert group is not None
    for count, newest, words in (
        (
            Count(8),
            group.newest[:1],
            "Only the newest order was read for this. 7 others were not, so",
        ),
        (
            Count(8, more=True),
            group.newest,
            "Only the 8 newest orders were read for this. The others were",
        ),
    ):
        such = replace(group, count=count, newest=newest)
        monkeypatch.setattr(Inspector, "group", lambda _, __, found=such: found)
        assert words in browser.page(f"/groups/{declined}")


def test_a_step_that_took_too_long_was_not_refused(browser: Browser, declined: str) -> None:
    task = browser.operator.world.task(NAMES[0])
    assert task.ending is not None
    late = replace(task, ending=replace(task.ending, why="charge_card: attempt 3 of 3 overdue"))
    assert order_effects(late)["failed, and its undo was sent to be safe"] == ["charge_card"]
    assert order_effects(replace(task, ending=None))["undone"] == ["charge_card", "reserve_stock"]


def test_a_group_that_is_not_listed_any_more_is_over_on_its_page(
    browser: Browser, declined: str
) -> None:
    assert f"{declined}, open" in browser.page(f"/groups/{declined}")
    assert OVER_WITH_ORDERS not in browser.page(f"/groups/{declined}")
    [row] = browser.inspector.stack.groups.groups()
    assert browser.inspector.stack.groups.remove(row)
    assert "No failure group is open." in browser.page("/groups")
    page = browser.page(f"/groups/{declined}")
    assert f"{declined}, over" in page
    assert OVER_WITH_ORDERS in page
    assert "8 orders undone" in page


def test_what_cannot_apply_to_undone_orders_is_not_offered(browser: Browser, declined: str) -> None:
    html = browser.html(f"/groups/{declined}")
    assert "/commands/undo-all" not in html
    assert "/commands/cancel-all" not in html
    assert 'name="again" value="yes"' in html
    page = browser.page(f"/groups/{declined}")
    assert "Each call is made as a new request, so what happened before would happen again" in page
    page = browser.page(f"/commands/undo-all?group={declined}")
    assert "Undo all is not possible: the orders are Undone." in page
    form = browser.html(f"/commands/resubmit-all?group={declined}")
    assert 'name="again" value="yes" checked' in form
    assert "under the same keys" not in form
    assert 'name="fresh_key"' not in form
    sent = browser.sends("undo-all", group=declined, reason="x", go="yes")
    assert "Undo all is not possible" in sent


def test_archived_orders_try_their_failed_steps_again_and_can_be_undone(browser: Browser) -> None:
    world = browser.operator.world
    world.faults(DECLINES, NO_REFUND)
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    group = str(world.task("ord-1").failure)
    html, page = browser.html(f"/groups/{group}"), browser.page(f"/groups/{group}")
    assert "Their failed undo is tried again under the same keys." in page
    assert "its undo failed in 1 order." in page
    assert 'name="again"' not in html
    assert f"/commands/undo-all?group={group}" in html
    assert "/commands/cancel-all" not in html
    form = browser.page(f"/commands/resubmit-all?group={group}")
    assert "again under the same keys" in form
    assert "Begin again from the start" not in form


def test_what_lets_orders_go_on_fits_how_they_failed(
    browser: Browser, declined: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = browser.inspector.group(declined)
    assert group is not None
    for how, title, words in (
        ("retried", "Run 8 orders now", "Each goes on by itself at its next attempt."),
        (
            "archived",
            "Resubmit 8 orders",
            "Their failed steps are tried again under the same keys.",
        ),
        ("undo_failed", "Resubmit 8 orders", "Their failed undo is tried again"),
        ("unreadable", "", "takes no command"),
    ):
        such = replace(group, how=how)
        monkeypatch.setattr(Inspector, "group", lambda _, __, found=such: found)
        person = Hand(browser).opens(f"/groups/{declined}")
        assert words in person.text
        begins = [
            button.words
            for form in person.forms
            for button in form.buttons
            if button.words.startswith(("Run", "Resubmit"))
        ]
        assert begins == ([f"{title}\u2026"] if title else [])


def test_a_hold_has_a_default_and_a_way_back(browser: Browser, declined: str) -> None:
    person = Hand(browser).opens(f"/groups/{declined}")
    form = person.form("Hold payment")
    assert form.field("For how long").value == "30m"
    assert form.field("Reason").required
    person.sends("Hold payment", Reason="x")
    assert [one.words for one in person.form("Hold now").buttons if one.classes == "danger"] == []
    person.sends("Hold now")
    assert "Release payment" in person.text
    assert not any(words.startswith("Hold payment") for _, words in person.links)
    held = person.address
    person.sends("Undo: release payment")
    assert "Done: payment is released, and takes work again." in person.text
    assert "Undo: release payment" not in browser.page(held), "it is not held any more"
    assert browser.operator.reads("agents")["agents"]
    assert "takes work" in browser.page("/agents")
    again = Hand(browser).opens(f"/groups/{declined}")
    assert "Hold payment" in again.text


def test_an_undo_of_a_hold_ends_no_later_hold(browser: Browser, declined: str) -> None:
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Hold payment", Reason="x")
    person.sends("Hold now")
    browser.operator.asks("hold", "payment", "--for", "2h")
    person.sends("Undo: release payment")
    assert "Nothing was sent" in person.text
    assert "routine" in browser.page("/agents")


def test_a_hold_that_replaces_another_has_no_undo(browser: Browser) -> None:
    browser.operator.asks("hold", "payment", "--for", "2h")
    page = browser.sends("hold", agent="payment", reason="x", seconds="30m")
    assert "It would replace the hold by ops until" in page
    done = browser.carries_out("hold", agent="payment", reason="x", seconds="30m")
    assert "Undo: release payment" not in done


def test_the_steps_of_the_effects_are_in_the_order_of_the_plan(
    browser: Browser, declined: str
) -> None:
    task = browser.operator.world.task(NAMES[0])
    for plan in (["reserve_stock", "charge_card"], ["charge_card", "reserve_stock"]):
        found = group_effects([task], plan)
        assert [*found.steps] == plan
        assert effects_words(found, Count(1)).index(plan[0]) < effects_words(found, Count(1)).index(
            plan[1]
        )
    assert not group_effects([task]).stands


@pytest.mark.exhaustive
def test_a_release_says_how_many_orders_wait_and_a_run_that_is_finished_says_so(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    browser.carries_out("hold", agent="payment", reason="x", seconds="30m")
    world.pass_time(KEEP_MARKS_FOR // SECOND)  # every function has read the hold
    world.submit(order(LATE))
    world.run()
    world.faults()
    assert "1 order waits for payment now." in browser.sends("release", agent="payment", reason="")
    person = Hand(browser).opens(f"/groups/{declined}")
    assert "The hold ends by itself; release it in step 3." in person.text
    person.sends("Release payment and resubmit 8 orders", Reason="the rule is right")
    assert "1 order waits for payment now." in person.text
    assert "can be resubmitted" in person.text
    person.sends("Release payment and resubmit 8 orders now")
    acts = person.text[person.text.index("What was done here") :]
    assert acts.index("release of payment") < acts.index("resubmit of 8 orders")
    world.pass_time(240)
    person.opens(person.address)
    assert "is finished: 8 of 8 orders Completed." in person.text
    assert "begins within a minute" not in person.text
    person.follows("Follow b-")
    assert "Ended" in person.text


def test_beside_a_run_that_goes_on_no_other_is_offered(browser: Browser, declined: str) -> None:
    browser.operator.world.faults()
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Resubmit 8 orders", Reason="x")
    person.sends("Resubmit all now")
    assert "lets them go on: 0 of 8 orders reached" in person.text
    assert "Resubmit 8 orders…" not in person.text


def test_a_read_only_console_shows_the_incident_without_forms(
    browser: Browser, declined: str
) -> None:
    browser.session.read_only = True
    html = browser.html(f"/groups/{declined}")
    assert "/commands/" not in html
    assert "8 orders undone" in browser.page(f"/groups/{declined}")


def test_the_owner_and_the_links_of_the_agent_are_those_of_the_outputs(
    browser: Browser, declined: str
) -> None:
    stack = browser.inspector.stack
    said = {
        "PaymentOwner": "team-pay, #pay-oncall",
        "PaymentRunbook": "https://wiki.example/pay",
        "PaymentDashboard": "javascript:alert(1)",
    }
    mended = replace(stack, outputs={**stack.outputs, **said})
    browser.inspector.__dict__["stack"] = mended
    html = browser.html(f"/groups/{declined}")
    page = browser.page(f"/groups/{declined}")
    assert "2. Repair Call the owner of payment: team-pay, #pay-oncall" in page, "before the links"
    assert "No owner" not in page
    assert 'href="https://wiki.example/pay"' in html
    assert "javascript:" not in html
    assert f"/aws/lambda/{stack.name}/payment" in html


def test_the_page_says_where_an_owner_is_named_if_none_is(browser: Browser, declined: str) -> None:
    page = browser.page(f"/groups/{declined}")
    assert "No owner of payment is known" in page
    assert "The output PaymentOwner of the application's template names one." in page


_FOLDED = re.compile(r"<details><summary>Show the 8 orders</summary>(.*?)</details>", re.DOTALL)


def test_many_rows_are_folded_away_and_few_are_not(
    browser: Browser, declined: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folded() -> list[str]:
        html = browser.html(f"/groups/{declined}")
        return _FOLDED.findall(html)

    assert folded() == []
    monkeypatch.setattr("roundsman_console.faces.web.pages.group.ROWS_UNFOLDED", 7)
    [rows] = folded()
    assert all(f">{name}</a>" in rows for name in NAMES), "they are in the page without a script"


def test_each_field_says_whether_it_must_be_filled_in(browser: Browser, declined: str) -> None:
    person = Hand(browser)
    labels = []
    for address in (
        f"/groups/{declined}",
        "/commands/hold?agent=payment",
        "/commands/hold",
        "/commands/release",
        f"/commands/resubmit-all?group={declined}",
        "/commands/run-all",
    ):
        person.opens(address)
        shown = [
            one
            for form in person.forms
            for one in form.fields
            if form.action.startswith("/commands/") and one.kind not in ("hidden", "checkbox")
        ]
        assert shown
        for one in shown:
            says = "required" if one.required else "optional|if it is left empty|by default.*"
            assert re.search(rf"[(;] ?[^();]*({says})\)$", one.label), one
        labels += [one.label for one in shown if address.startswith("/groups/")]
    browser.carries_out("hold", agent="payment", reason="x", seconds="30m")
    held = person.opens(f"/groups/{declined}").form("Release payment")
    labels += [one.label for one in held.fields]
    for words in ("hold (required)", "release (optional)", "resubmission (required)"):
        assert f"Reason for the {words}" in labels


def test_fields_that_may_be_empty_are_read_when_they_are(browser: Browser, declined: str) -> None:
    limits = dict.fromkeys(("canary", "rate", "at_once", "stop_at", "canary_wait"), "")
    page = browser.sends("resubmit-all", group=declined, again="yes", reason="x", **limits)
    assert "8 of 8 orders are eligible" in page
    browser.carries_out("hold", workflow="order_fulfilment", reason="x", seconds="30m")
    empty = {"share": "", "watch": "", "stop_at": "", "reason": ""}
    assert "100 % of the orders" in browser.sends("release", workflow="order_fulfilment", **empty)


def test_the_form_of_an_agent_says_nothing_of_shares(browser: Browser) -> None:
    browser.carries_out("hold", agent="payment", reason="x", seconds="30m")
    assert "share" not in browser.page("/commands/release?agent=payment")
    assert "share" in browser.page("/commands/release")


def test_one_button_is_the_next_act(browser: Browser, declined: str) -> None:
    person = Hand(browser).opens(f"/groups/{declined}")

    def next_acts() -> list[str]:
        buttons = [one for form in person.forms for one in form.buttons]
        return [one.words for one in buttons if one.classes == "go"]

    assert next_acts() == ["Hold payment\u2026"]
    person.sends("Hold payment", Reason="x")
    person.sends("Hold now")
    assert next_acts() == ["Release payment\u2026"]
    person.sends("Release payment")
    person.sends("Release now")
    assert next_acts() == ["Resubmit 8 orders\u2026"]


def current_step(html: str) -> str:
    """The heading of the step that the page leads to."""
    found = re.search(r'aria-current="step"><section[^>]*><h2[^>]*>([^<]+)</h2>', html)
    assert found is not None
    return found[1]


def hold_and_release(browser: Browser) -> None:
    """Hold payment while an order comes, and release it: the order is woken."""
    world = browser.operator.world
    browser.carries_out("hold", agent="payment", reason="x", seconds="30m")
    world.pass_time(KEEP_MARKS_FOR // SECOND)  # every function has read the hold
    world.submit(order(LATE))
    world.run()
    browser.work("release", agent="payment", reason="")


@pytest.mark.exhaustive
def test_after_a_release_the_orders_are_resubmitted_next(browser: Browser, declined: str) -> None:
    hold_and_release(browser)
    html, page = browser.html(f"/groups/{declined}"), browser.page(f"/groups/{declined}")
    assert current_step(html) == "3. Let go on"
    assert "Orders still fail" not in page
    assert "no order has failed so since; 1 waiting order was woken." in page
    browser.operator.world.clock.now += 10 * SECOND
    assert "payment was released 10 s ago" in browser.page(f"/groups/{declined}")
    browser.carries_out("hold", agent="payment", reason="x", seconds="30m", incident=declined)
    assert current_step(browser.html(f"/groups/{declined}")) == "2. Repair", "it is held again"


@pytest.mark.exhaustive
def test_an_order_that_fails_after_the_release_leads_back_to_the_hold(
    browser: Browser, declined: str
) -> None:
    hold_and_release(browser)
    browser.operator.world.pass_time(60)  # the order that waited is declined too
    assert browser.operator.world.task(LATE).failure == declined
    html, page = browser.html(f"/groups/{declined}"), browser.page(f"/groups/{declined}")
    assert current_step(html) == "1. Stop"
    assert "Orders fail again since the release." in page
    assert "no order has failed so since" not in page


def test_what_a_release_has_woken_is_said_as_far_as_it_is_known(
    browser: Browser, declined: str
) -> None:
    group = browser.inspector.group(declined)
    assert group is not None
    assert group.last_at is not None
    at = group.last_at + MINUTE
    for woken, words in (
        (None, ""),
        (Woken(more=True), ""),
        (Woken(("ord-1",)), "; 1 waiting order was woken"),
        (Woken(), "; no order waited for it"),
        (
            Woken(("a", "b"), more=True),
            "; 2 waiting orders were woken, the others by",
        ),
    ):
        released = ReleasedHere("payment", at, "amy", "", None, woken)
        said = still_fails(group, at, released=released)
        assert f": no order has failed so since{words}" in said
        assert said.count(";") == (1 if words else 0)
    late = group.last_at + 9 * MINUTE
    for succeeded, words in (
        (None, "9 min. Whether an order has come to charge_card since is not known here."),
        (0, "9 min, and no attempt of charge_card succeeded since."),
        (2, "9 min, and 2 attempts of charge_card succeeded since."),
    ):
        assert still_fails(group, late, succeeded=succeeded).endswith(words)
    retried = replace(group, how="retried")
    released = ReleasedHere("payment", at, "amy", "", None)
    assert "no further order has failed so since" in still_fails(retried, at, released=released)


@pytest.mark.exhaustive
def test_that_the_cause_is_gone_is_said_if_resubmitted_orders_are_completed(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.faults()
    some = {"canary": "1", "rate": "0.001"}  # the others wait
    browser.carries_out("resubmit-all", group=declined, again="yes", reason="x", **some)
    world.pass_time(600)
    page = browser.page(f"/groups/{declined}")
    assert re.search(r"and \d orders? of a bulk run (is|are) Completed\.", page)
    assert "is not known here" not in page


def let_go_on(browser: Browser, names: list[str]) -> None:
    browser.operator.world.faults()
    for name in names:
        browser.operator.asks("resubmit", name, "--again")


def since_when(page: str) -> str:
    found = re.search(r"Orders failed with this reason (from [0-9:]{8} to|at) [0-9:]{8} UTC", page)
    assert found is not None, page
    return found[0]


@pytest.mark.exhaustive
def test_since_when_orders_fail_stays_when_the_first_ones_have_left_the_group(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.pass_time(180)
    world.submit(order(LATE))
    world.run()
    before = since_when(browser.page(f"/groups/{declined}"))
    assert " to " in before
    let_go_on(browser, NAMES)
    page = browser.page(f"/groups/{declined}")
    assert "1 order undone" in page
    assert since_when(page) == before
    world.pass_time(180)  # the supervisor counts
    let_go_on(browser, [LATE])
    assert since_when(browser.page(f"/groups/{declined}")) == before, "also of an empty group"


@pytest.mark.exhaustive
def test_a_group_that_is_calm_keeps_what_was_done_and_says_when_it_is_over(
    browser: Browser, declined: str
) -> None:
    world = browser.operator.world
    world.pass_time(180)  # the supervisor counts, and alerts
    browser.carries_out("hold", agent="payment", reason="declines every card", seconds="30m")
    let_go_on(browser, NAMES)
    html, page = browser.html(f"/groups/{declined}"), browser.page(f"/groups/{declined}")
    assert "Orders of order_fulfilment failed at charge_card: CardDeclined" in page
    assert "No order is in the group now. It is over 5 min after the supervisor has seen it" in page
    since_when(page)
    assert 'class="chart course"' in html
    assert "payment is held for another" in page
    assert "hold of payment for 30 min by" in page
    assert "severity-" not in html
    forms = {"/commands/groups-note", "/commands/release"}
    assert set(re.findall("/commands/[a-z-]+", html)) == forms
    world.pass_time(180)
    page = browser.page(f"/groups/{declined}")
    assert re.search(r"Empty since [0-9:]{8}, over at [0-9:]{8} UTC, if no order fails", page)


def test_the_log_is_that_of_the_agent_in_the_time_of_the_failures() -> None:
    arn = "arn:aws:cloudformation:eu-central-1:000000000000:stack/shop/1"
    at_aws = DeployedStack(
        "shop", {}, {}, arn=arn, endpoint="https://cloudformation.eu-central-1.amazonaws.com"
    )
    first, last = 1_800_000_000_000, 1_800_000_060_000
    found = repair_of(at_aws, "payment", first, last, last + MINUTE)
    [logs] = found.links
    assert logs.title == "Logs of payment"
    aws = aws_console_of(at_aws)
    assert aws is not None
    around = (first - 5 * MINUTE, last + 5 * MINUTE)
    assert logs.address == aws.logs(["payment"], *around, errors=True)
    assert found.logs == "aws logs tail /aws/lambda/shop/payment --since 7m"
    local = replace(at_aws, endpoint="http://127.0.0.1:4566")
    assert repair_of(local, "payment", first, last, last).links == ()


def test_an_incident_that_goes_on_says_so(browser: Browser, declined: str) -> None:
    page = browser.page(f"/groups/{declined}")
    assert "Orders still fail." in page
    browser.operator.world.clock.now += 10 * MINUTE
    page = browser.page(f"/groups/{declined}")
    assert "No order has failed so in the last 10 min. Whether an order has come" in page
    assert "orders in the group now, by when they failed: the index of failures" in page


def measured(browser: Browser, metric: str, namespace: str, of: dict[str, str], *ago: int) -> None:
    """CloudWatch has one value of the metric so many minutes ago each."""
    at = browser.operator.world.clock.now
    boto3.client("cloudwatch").put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": [{"Name": name, "Value": value} for name, value in of.items()],
                "Timestamp": datetime.fromtimestamp((at - each * MINUTE) / 1000, tz=UTC),
                "Value": 1.0,
            }
            for each in ago
        ],
    )


def test_the_page_draws_since_when_they_fail_and_what_succeeded_since_and_who_did_what(
    browser: Browser, declined: str
) -> None:
    world, own = browser.operator.world, "Roundsman/roundsman"
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Hold payment", Reason="<b>declines</b>")
    person.sends("Hold now")
    person.sends("Release payment", Reason="the rule is right")
    person.sends("Release now")
    world.clock.now += 12 * MINUTE
    supervisor = browser.inspector.stack.output("SupervisorFunctionName")
    step = {"workflow": "order_fulfilment", "step": "charge_card"}
    measured(browser, "Invocations", "AWS/Lambda", {"FunctionName": supervisor}, *range(62))
    measured(browser, "StepMs", own, step, 5, 5, 4)
    page = browser.page(f"/groups/{declined}")
    assert re.search(
        r"with this reason at [0-9:]{8} UTC\. Since then 3 attempts of charge_card", page
    )
    hold, release = page.index("held payment for 30 min"), page.index("released payment: the rule")
    assert hold < release
    html = browser.html(f"/groups/{declined}")
    assert "<b>declines" not in html
    assert html.count('class="done done-hold"') == 1
    assert html.count('class="done done-release"') == 1, "the stored release is the same one"
    [document] = [browser.operator.reads("groups", "show", declined)["course"]]
    assert isinstance(document, dict)
    by_name = {one["name"]: one["counts"] for one in document["series"]}
    assert sum(by_name["failed"]) == len(NAMES)
    assert by_name["stepFailed"][-1] is None, "not yet known"
    assert 0 in by_name["stepFailed"]


def test_a_result_of_another_incident_is_not_shown(browser: Browser, declined: str) -> None:
    person = Hand(browser).opens(f"/groups/{declined}")
    person.sends("Hold payment", Reason="x")
    person.sends("Hold now")
    result = person.address.partition("?")[2]
    assert "Done: payment is held for 30 min." in browser.page(f"/groups/{declined}?{result}")
    assert "Done: payment is held for 30 min." not in browser.page(f"/groups/f-00000000?{result}")
    assert "Done: payment is held for 30 min." not in browser.page(f"/groups/{declined}?result=x")

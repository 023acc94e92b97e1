"""How a claim ends: paid, undone at each of its steps, withdrawn, or recalled after the payment."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import claim
import pytest
from claim import AGENTS

from roundsman import Json, PermanentError
from roundsman_testing import TaskState, World

DAY = 86_400_000
PAPERS = {
    "report": ["police", "doctor"],
    "police": ["witness"],
    "doctor": [],
    "witness": ["police"],
}
"""Which documents a document mentions. The police and the witness mention each other."""


class Services:
    """Stand in for the services of all agents, and note what they have done."""

    def __init__(self) -> None:
        self.there: set[tuple[str, ...]] = set()
        self.looks = 0
        self.insured = True
        self.notes: list[str] = []
        self.letters: list[str] = []
        self.closed_accounts = False

    def call(
        self, method: str, *path: str, key: str, body: Json, **_: object
    ) -> Mapping[str, Json]:
        """Answer one call."""
        match method, path:
            case "PUT", ("copies", _, document):
                self.there.add(path)
                return {"mentions": list(PAPERS[document])}
            case "POST", ("estimates",):
                self.there.add(("estimates", key))
                self.looks += 1
                state = "running" if self.looks < 9 else "done" if self.insured else "not insured"
                return {"state": state, "amount": "480.00"}
            case "POST", ("notes",):
                assert isinstance(body, dict)
                self.notes.append(str(body["text"]))
            case "POST", ("letters",):
                assert isinstance(body, dict)
                self.letters.append(str(body["end"]))
            case "POST", ("payments",):
                if self.closed_accounts and not key.endswith("cheques"):
                    raise PermanentError("AccountClosed")
                self.there.add(("payments", key))
            case "PUT", _:
                self.there.add(path)
            case "DELETE", _:
                self.there.discard(path)
            case _:
                raise AssertionError(path)
        return {}

    @property
    def paid_by(self) -> list[str]:
        """The last parts of the keys under which was paid."""
        return sorted(key.rpartition("/")[2] for what, key, *_ in self.there if what == "payments")


@pytest.fixture
def services() -> Services:
    """The services that the agents of this test call."""
    return Services()


@pytest.fixture
def world(services: Services, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with one claim."""
    monkeypatch.setattr(claim, "service", lambda: services)
    world = World(claim.claim, agents=AGENTS)
    world.submit({"orderId": "c-1", "policy": "P-77", "report": "report"})
    return world


def at_the_desk(world: World) -> World:
    """Run until the desk is asked."""
    return world.run(until=lambda: world.waits_for_answer("c-1", "approve"))


def in_the_cooling_off(world: World) -> World:
    """The desk has approved, the customer has accepted, and a week of the two is over."""
    at_the_desk(world).answer("c-1", "approve", {"by": "ann"})
    world.signal("c-1", "accepted")
    return world.run(for_=timedelta(days=7))


def state(world: World) -> TaskState:
    """The state of the claim."""
    return world.task("c-1").state


def test_a_claim_is_paid(world: World, services: Services) -> None:
    in_the_cooling_off(world)
    assert services.paid_by == []
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert services.paid_by == ["perform"]


def test_each_document_that_one_mentions_is_copied_once(world: World, services: Services) -> None:
    at_the_desk(world)
    copies = Counter(path[2] for path in services.there if path[0] == "copies")
    assert copies == dict.fromkeys(PAPERS, 1)


def test_the_assessor_is_asked_until_the_estimate_is_done(world: World, services: Services) -> None:
    begun = world.now
    at_the_desk(world)
    assert services.looks == 9
    assert 2 <= (world.now - begun) / DAY < 2.1
    assert world.task("c-1").step("estimate").failure_count == 0


def test_a_damage_that_is_not_insured_leaves_nothing_behind(
    world: World, services: Services
) -> None:
    services.insured = False
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert world.task("c-1").ended_early is not None
    assert services.there == set()
    assert services.letters == []


def test_the_desk_is_reminded_each_day(world: World, services: Services) -> None:
    at_the_desk(world).run(for_=timedelta(days=2, hours=1))
    assert [note.split(":")[0] for note in services.notes[1:]] == ["Reminder 1", "Reminder 2"]


def test_a_claim_that_the_desk_declines_is_undone(world: World, services: Services) -> None:
    at_the_desk(world).answer("c-1", "approve", error=PermanentError("Declined", "by ann"))
    world.run()
    assert state(world) is TaskState.UNDONE
    assert services.there == set()
    assert services.letters == ["Undone"]


def test_a_customer_may_accept_before_the_desk_has_approved(world: World) -> None:
    at_the_desk(world).signal("c-1", "accepted")
    world.run(for_=timedelta(hours=1))
    world.answer("c-1", "approve")
    world.run()
    assert state(world) is TaskState.COMPLETED


def test_a_customer_who_does_not_accept_is_not_paid(world: World, services: Services) -> None:
    at_the_desk(world).answer("c-1", "approve")
    world.run()
    assert state(world) is TaskState.UNDONE
    assert services.there == set()
    assert services.letters == ["Undone"]


def test_a_customer_who_withdraws_in_time_is_not_paid(world: World, services: Services) -> None:
    in_the_cooling_off(world).cancel("c-1")
    world.run()
    assert state(world) is TaskState.CANCELLED
    assert services.there == set()
    assert services.letters == ["Cancelled"]


def test_cheques_are_sent_while_the_bank_takes_no_work(world: World, services: Services) -> None:
    in_the_cooling_off(world).hold("bank", timedelta(days=30), "their maintenance")
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert services.paid_by == ["cheques"]


def test_a_customer_whose_account_is_closed_gets_a_cheque(world: World, services: Services) -> None:
    services.closed_accounts = True
    in_the_cooling_off(world).run()
    assert state(world) is TaskState.COMPLETED
    assert services.paid_by == ["cheques"]


def test_a_claim_that_was_paid_is_recalled(world: World, services: Services) -> None:
    in_the_cooling_off(world).run(until=lambda: state(world) is TaskState.COMPLETED)
    world.operator.undo("c-1")
    world.run()
    assert state(world) is TaskState.UNDONE
    assert services.there == set()

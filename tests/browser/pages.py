"""The addresses of every page of the console, for a stack in which everything has happened."""

from typing import Protocol

from roundsman_console.faces.web.work import Work, WorkResult, works_of
from roundsman_console.inspector import Inspector
from tests.console.operators import Operator


class Served(Protocol):
    """A console of which the pages are."""

    @property
    def inspector(self) -> Inspector: ...


class Person(Protocol):
    """Somebody with the command line, before the pages of a console."""

    @property
    def operator(self) -> Operator: ...

    @property
    def server(self) -> Served: ...


FORMS = {
    "resubmit": "/commands/resubmit?order=ord-2000",
    "resolve": "/commands/resolve?order=ord-2100",
    "hold": "/commands/hold?agent=payment",
    "resend-all": "/commands/resend-all",
    "submit": "/commands/submit",
    "answer": "/commands/answer",
    "rollback": "/commands/rollback",
    "smoke": "/commands/smoke",
    "reconcile": "/commands/reconcile",
    "erase": "/commands/erase?order=ord-1000",
}


def addresses(desk: Person) -> dict[str, str]:
    """Each page by a name, those of one group and one plan found in the stack."""
    groups = desk.operator.reads("groups", "ls")["groups"]
    assert isinstance(groups, list)
    runs = desk.operator.reads("bulk", "ls")["runs"]
    assert isinstance(runs, list)
    rejected, dead = first_id(desk, "rejected", "ls"), first_id(desk, "dlq", "ls")
    plan = desk.operator.world.task("ord-2000").plan
    return {
        "overview": "/",
        "orders": "/orders",
        "no-orders": "/orders?state=Cancelled",
        "completed": "/orders/ord-1000",
        "undone": "/orders/ord-2000",
        "archived": "/orders/ord-2100",
        "waits": "/orders/ord-6001",
        "groups": "/groups",
        "group": f"/groups/{groups[0]['group']}",
        "schedules": "/schedules",
        "shift": "/shift",
        "dead-letters": "/dead-letters",
        "rejected": "/rejected",
        "agents": "/agents",
        "agent": "/agents/payment",
        "difference": "/orders/ord-2000/difference",
        "workflows": "/workflows",
        "workflow": f"/workflows/{plan}",
        "cost": "/cost?since=7d",
        "export": "/export?state=Undone",
        "doctor": "/doctor",
        "not-found": "/nowhere",
        **FORMS,
        "bulk-runs": "/bulk",
        "bulk-run": f"/bulk/{runs[0]['runId']}",
        "resubmit-all": f"/commands/resubmit-all?group={groups[0]['group']}",
        "resubmit-filter": "/commands/resubmit-all?state=Undone&at_step=charge_card&older=1s",
        "undo-named": "/commands/undo-all",
        "resolve-filter": "/commands/resolve-all?state=Archived",
        "work": f"/progress/{a_work(desk)}",
        "resend": f"/commands/resend?message={rejected}",
        "rejected-drop": f"/commands/rejected-drop?message={rejected}",
        "redrive": f"/commands/redrive?queue=SchedulerQueue&only={dead}",
        "dlq-drop": f"/commands/dlq-drop?message={dead}",
    }


def first_id(desk: Person, *verb: str) -> str:
    """The id of the first message that a command lists."""
    found = desk.operator.reads(*verb)["messages"]
    assert isinstance(found, list)
    return str(found[0]["messageId"])


def a_work(desk: Person) -> str:
    """The id of a work that has ended with something to know and to do."""

    def do(work: Work) -> WorkResult:
        work.add_line("0.0 s  sent smoke-1 to roundsman")
        notes = ("Left behind: the effects of reserve_stock of smoke-1.",)
        return WorkResult("smoke-1 is Undone.", False, notes, "roundsman why smoke-1", "/orders/x")

    work = works_of(desk.server.inspector).start("Smoke test of roundsman", "/doctor", do)
    assert work.thread is not None
    work.thread.join()
    return work.id

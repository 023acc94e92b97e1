"""The configurations that are explored: a plan each, and what may go wrong with it, how often.

Times are 30 s each, the engine's own START_WITHIN, and each operation has two attempts: more of
either makes more of the same states. Every configuration has all orders of all messages and of all
that becomes due.
"""

from dataclasses import replace
from datetime import timedelta

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import (
    AnyOf,
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    Step,
    Strategy,
    Undo,
    Wait,
    Workflow,
)
from roundsman.model.corrections import Change
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Erase,
    Extend,
    OperatorEvent,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import MINUTE
from tests.exploration.canonical import T0, VERSION
from tests.exploration.model import Configuration

HALF_A_MINUTE = timedelta(seconds=30)
TWICE = Retry(max_attempts=2, first_delay=2 * HALF_A_MINUTE)  # half of it, with the model's jitter
ONCE = Retry(max_attempts=1, first_delay=2 * HALF_A_MINUTE)
FEWER = ("done", "answer lost", "refused")
UNDO_FEWER = ("done", "answer lost")


def step(
    name: str,
    *after: Step,
    any_of: AnyOf | None = None,
    fenced: bool = True,
    retry: Retry = TWICE,
    on_failure: Strategy | None = None,
) -> Step:
    return Step(
        name=name,
        agent="worker",
        after=any_of or after,
        complete_within=HALF_A_MINUTE,
        retry=retry,
        compensation=Compensation(retry=retry, fences_late_performs=fenced),
        on_failure=on_failure,
    )


def workflow(*steps: Step, on_failure: Strategy | None = None) -> Workflow:
    """A workflow whose own complete-by and retention are never reached."""
    return Workflow(
        name="story",
        steps=steps,
        complete_within=timedelta(days=1000),
        on_failure=on_failure or Undo(),
        retain_for=timedelta(days=100),
    )


def plan(*steps: Step, on_failure: Strategy | None = None) -> Plan:
    return plan_of(workflow(*steps, on_failure=on_failure))


def asked(*names: str) -> dict[str, OperatorEvent]:
    """What a person may ask, by the name of the command."""
    every: dict[str, OperatorEvent] = {
        "resubmit": Resubmit(CommandSource("resubmit", "ann")),
        "resubmit --again": Resubmit(CommandSource("again", "ann"), again=True),
        "run": RunNow(CommandSource("run", "ann")),
        "undo": UndoAsked(CommandSource("undo", "ann")),
        "take back": UndoAsked(CommandSource("take-back", "ann", seen_version=VERSION)),
        "take back b": UndoPart(CommandSource("take-b", "ann", seen_version=VERSION), ("b",)),
        "cancel": Cancel(CommandSource("cancel", "ann")),
        "cancel --no-undo": Cancel(CommandSource("stop", "ann"), undo=False),
        "resubmit --fresh-key": Resubmit(CommandSource("fresh", "ann"), fresh_key=True),
        "resubmit --set": Resubmit(
            CommandSource("set", "ann"), changes=(Change(("items", 0), 3),), used=True
        ),
        "resolve a did": Resolve(CommandSource("did", "ann"), "a", did=True),
        "resolve a did-not": Resolve(CommandSource("did-not", "ann"), "a", did=False),
        "resolve nap did": Resolve(CommandSource("wake", "ann"), "nap", did=True),
        "extend nap": Extend(CommandSource("extend-nap", "ann"), 30, "nap"),
        "resolve paid did": Resolve(CommandSource("by-hand", "ann"), "paid", did=True),
        "extend paid": Extend(CommandSource("extend-paid", "ann"), 30, "paid"),
        "signal": Signalled(CommandSource("pay-7", "application"), "paid", 1),
        "signal again": Signalled(CommandSource("pay-7", "application"), "paid", 1),
        "another signal": Signalled(CommandSource("pay-8", "application"), "paid", 2),
        "extend": Extend(CommandSource("extend", "ann"), 30),
        "reconcile": Reconcile(CommandSource("reconcile", "ann"), T0),
        "erase": Erase(CommandSource("erase", "ann")),
        "extend a": Extend(CommandSource("extend-a", "ann"), 30, "a"),
    }
    return {name: every[name] for name in names}


one = step("a")
bare = replace(one, compensation=None)
unfenced = step("a", fenced=False)
waits = step("a", on_failure=Wait(4 * HALF_A_MINUTE, times=1, then=Undo()))
two = step("b", one)
row = (one, two, step("c", two))
pair = (step("a"), step("b"))
unfenced_row = (unfenced, step("b", unfenced, fenced=False))
# Its next attempt may begin for 25 s after the first, and its undo for 60 s.
forgotten = replace(
    one,
    compensation=Compensation(
        retry=TWICE, fences_late_performs=True, key_lifetime=3 * HALF_A_MINUTE
    ),
)


def adding(*steps: Step) -> Plan:
    """A plan in which a step may add the step `leg[a]`."""
    return plan_of(replace(workflow(*steps), may_add=(step("leg"),)))


A_STEP = Configuration(plan=plan(one))
KEPT = Configuration(plan=plan(one, on_failure=Archive()))
UNFENCED = Configuration(plan=plan(unfenced))
A_ROW = Configuration(plan=plan(one, two))
A_PAIR = Configuration(plan=plan(*pair))
RUN_EARLY = Configuration(plan=plan(waits), commands=asked("run"))


def fewer(configuration: Configuration) -> Configuration:
    """Without answers that a service is unavailable; a lost one leads to another attempt, too."""
    return replace(configuration, endings=FEWER, undo_endings=UNDO_FEWER)


def near_end(*steps: Step) -> Configuration:
    """The task has time for three attempts, whichever they are."""
    made = replace(workflow(*steps), complete_within=3 * HALF_A_MINUTE)
    return Configuration(plan=plan_of(made), near_end=True)


AGENTS = ("worker", "backup")
briefly = step("a", retry=ONCE)
# Its request may act for a minute: ten times as long again as an attempt, and the skew of clocks.
quick = replace(briefly, complete_within=timedelta(seconds=5))
uncompensated = replace(quick, compensation=None)
several = replace(briefly, agent="", agents=AGENTS)
items = replace(briefly, for_each="input.items", tolerate=0.5)
bare_items = replace(items, compensation=None)
beats = replace(one, complete_within=2 * HALF_A_MINUTE, heartbeat_within=HALF_A_MINUTE / 2)
PROVED = ("done", "answer lost", "refused", "refused, and proves it")

SEVERAL = Configuration(
    plan=plan(several),
    endings=("done", "answer lost", "refused, and proves it"),
    undo_endings=UNDO_FEWER,
    outcomes=True,
)
HANDED_OVER = replace(
    SEVERAL, endings=("done", "given back, and proves it"), undo_endings=("done",)
)
MOVES = replace(
    SEVERAL,
    plan=plan(replace(one, agent="", agents=AGENTS)),
    endings=("done", "unavailable, and proves it", "done, and says unavailable"),
    undo_endings=("done",),
)
FORGETS = Configuration(
    plan=plan(forgotten),
    endings=("done", "refused", "answer lost"),
    undo_endings=("done", "answer lost"),
    commands=asked("take back"),
)
HELD = replace(HANDED_OVER, held=("worker",), holds=1)
REPAIRED = Configuration(
    plan=plan(quick, on_failure=Archive()),
    endings=(*PROVED, "done, and says refused", "done, its answer too large"),
    undo_endings=UNDO_FEWER,
    outcomes=True,
)
FOR_GOOD = replace(REPAIRED, plan=plan(uncompensated, on_failure=Archive()))
ASKS = Configuration(plan=plan(briefly), endings=("asks outside",), undo_endings=("done",))
POLLED = Configuration(
    plan=plan(briefly), endings=("done", "begun, and is not done"), undo_endings=("done",)
)
nap = Sleep(name="nap", for_=2 * HALF_A_MINUTE, after=(briefly,))
SLEEPS = Configuration(
    plan=plan(briefly, nap, step("b", nap, retry=ONCE)),
    endings=("done", "refused"),
    undo_endings=("done",),
)
FIRST = replace(nap, after=())
BEGINS = replace(SLEEPS, plan=plan(FIRST, step("b", FIRST, retry=ONCE)), endings=("done",))
BESIDE = replace(SLEEPS, plan=plan(briefly, FIRST, on_failure=Archive()))
paid = Signal("paid", within=2 * HALF_A_MINUTE, after=(briefly,))
SIGNALLED = replace(
    SLEEPS, plan=plan(briefly, paid, step("b", paid, retry=ONCE)), commands=asked("signal")
)
DEPOSIT = replace(paid, name="deposit", after=())
TWO_WAITS = replace(SLEEPS, plan=plan(DEPOSIT, replace(paid, after=(DEPOSIT,))))
PAID_FIRST = replace(paid, after=())
PAID_BESIDE = replace(SLEEPS, plan=plan(briefly, PAID_FIRST, on_failure=Archive()))
GOES_ON = replace(paid, otherwise=0)
UNPAID = replace(
    SIGNALLED,
    plan=plan(
        briefly,
        GOES_ON,
        replace(step("b", GOES_ON, retry=ONCE), when="came.paid"),
        replace(step("c", GOES_ON, retry=ONCE), when="!(came.paid)"),
    ),
)
asking = replace(briefly, otherwise=0)
UNANSWERED = replace(
    ASKS,
    plan=plan(asking, step("b", asking, retry=ONCE)),
    endings=("asks outside", "refused"),
)
REMINDS = replace(ASKS, endings=("asks outside, and reminds",))
# Forty minutes at most between two attempts, three quarters of it with the model's jitter: so there
# are few attempts in the hour that an unexpected error is retried for.
LATER = Retry(
    keep_trying_for=timedelta(minutes=15),
    first_delay=timedelta(minutes=40),
    max_delay=timedelta(minutes=40),
)
patient = replace(one, retry=LATER)
HAS_A_BUG = Configuration(
    plan=plan(patient),
    waits=40 * MINUTE,
    endings=("done", "has a bug"),
    undo_endings=("done",),
)
BEATS = Configuration(
    plan=plan(beats),
    endings=("shows progress", "done"),
    undo_endings=("done",),
)
ITEMS = Configuration(plan=plan(items), endings=("done", "refused"), undo_endings=("done",))
THEN_ANOTHER = replace(ITEMS, plan=plan(bare_items, step("b", bare_items, retry=ONCE)))
first, second = step("a", retry=ONCE), step("b", retry=ONCE)
ONE_OF_TWO = replace(
    ITEMS, plan=plan(first, second, step("c", any_of=AnyOf(first, second), retry=ONCE))
)
one_item = replace(items, tolerate=0, enough=1)
ONE_ITEM = replace(ITEMS, plan=plan(one_item, step("b", one_item, retry=ONCE)))
tell = replace(bare, name="tell", retry=TWICE)


def closing(*steps: Step, on_failure: Strategy | None = None) -> Plan:
    """A plan with the closing step `tell` at each end."""
    made = workflow(*steps, on_failure=on_failure)
    return plan_of(replace(made, when_undone=(tell,), when_failed=(tell,), when_cancelled=(tell,)))


CLOSES = Configuration(
    plan=closing(briefly), endings=("done", "refused", "answer lost"), undo_endings=("done",)
)
ENDS_EARLY = Configuration(
    plan=plan(briefly, step("b", retry=ONCE), step("c", briefly, retry=ONCE)),
    endings=("done", "refused", "done, and ends it early", "done, and takes all back"),
    undo_endings=("done",),
)
ADDS = Configuration(
    plan=adding(one), endings=("done, and adds a step", "refused"), undo_endings=("done",)
)
TOO_LONG = Configuration(
    plan=plan(briefly, step("b", briefly, retry=ONCE)),
    endings=("done", "done, its result too long"),
    undo_endings=("done",),
)
LOSES_PLAN = Configuration(
    plan=plan(one), endings=("done", "answer lost"), undo_endings=("done",), loses_plan=True
)


def repeated(configuration: Configuration, *commands: str) -> Configuration:
    """With one request that is read once more though it was answered, and one other message that
    is handled twice; and with what a person may ask."""
    return replace(configuration, copies=1, repeats=1, commands=asked(*commands))


def extended(*steps: Step) -> Configuration:
    made = replace(near_end(*steps), endings=("done",), undo_endings=("done",))
    return replace(made, outcomes=True)


SMALL: dict[str, Configuration] = {
    "one step, archived": KEPT,
    "one step, undone": A_STEP,
    "one step that waits, or that a person runs": RUN_EARLY,
    "one step, a crash": replace(A_STEP, crashes=1),
    "one step, a repeated message": replace(A_STEP, repeats=1),
    "one step, two supervisors in pieces": replace(A_STEP, supervisors=2),
    "one step, two schedulers, one in pieces": replace(fewer(A_STEP), schedulers=1),
    "one step, resubmitted": replace(KEPT, commands=asked("resubmit")),
    "one step, cancelled": replace(A_STEP, commands=asked("cancel")),
    "one step, completed and taken back": replace(A_STEP, commands=asked("take back")),
    "two steps in a row, completed, and the second taken back": replace(
        A_ROW, endings=("done",), undo_endings=FEWER, commands=asked("take back b")
    ),
    "one step, its task out of time": near_end(one),
    "one unfenced step, its task out of time": near_end(unfenced),
    "one unfenced step, every 15 s": replace(UNFENCED, tick=15_000),
    "one unfenced step, a repeated message": replace(UNFENCED, repeats=1),
    "two steps in a row": A_ROW,
    # Of each of these a request is read twice, and another message handled twice.
    "a step of two agents": repeated(SEVERAL),
    "a step of two agents that fails with and without an effect": MOVES,
    "a step whose key is forgotten": FORGETS,
    "a step that a fresh key is asked for": repeated(REPAIRED, "resubmit --fresh-key"),
    "a step whose input is corrected": repeated(REPAIRED, "resubmit --set"),
    "a step without undo that a fresh key is asked for": repeated(FOR_GOOD, "resubmit --fresh-key"),
    "a step that is resolved as not happened": repeated(
        replace(FOR_GOOD, endings=("done", "answer lost", "refused")), "resolve a did-not"
    ),
    "a step that is given more time": replace(
        extended(briefly), repeats=1, commands=asked("extend a")
    ),
    "two steps in a row, their tables restored": replace(fewer(A_ROW), commands=asked("reconcile")),
    "a step whose order is erased": repeated(A_STEP, "erase"),
    "a sleep between two steps": replace(SLEEPS, repeats=1),
    "a sleep between two steps, a crash": replace(SLEEPS, crashes=1),
    "a sleep beside a step, cancelled, resolved or resubmitted": replace(
        BESIDE, commands=asked("cancel", "resolve nap did", "resubmit")
    ),
    "a sleep that lasts longer, is run or undone, and whose tables are restored": replace(
        BEGINS, commands=asked("extend nap", "run", "undo", "reconcile")
    ),
    "a sleep before a step, two schedulers, one in pieces": replace(BEGINS, schedulers=1),
    "a wait for a signal between two steps": replace(SIGNALLED, repeats=1),
    "a wait for a signal between two steps, a crash": replace(SIGNALLED, crashes=1),
    "a signal that is early, and whose order is cancelled, a crash": replace(
        SIGNALLED, commands=asked("signal", "cancel --no-undo"), crashes=1
    ),
    "a wait for a signal that comes twice": replace(
        SIGNALLED, commands=asked("signal", "signal again", "another signal")
    ),
    "two waits for signals of one name, a crash": replace(
        TWO_WAITS, commands=asked("signal", "another signal"), crashes=1
    ),
    "a wait for a signal beside a step, cancelled, resolved or resubmitted": replace(
        PAID_BESIDE, commands=asked("signal", "cancel", "resolve paid did", "resubmit")
    ),
    "a wait for a signal that lasts longer, or whose tables are restored": replace(
        PAID_BESIDE, commands=asked("signal", "extend paid", "reconcile")
    ),
    "a wait for a signal, two schedulers, one in pieces": replace(
        SIGNALLED, plan=plan(PAID_FIRST, step("b", PAID_FIRST, retry=ONCE)), schedulers=1
    ),
    "a signal that does not come, and whose task goes on, a crash": replace(UNPAID, crashes=1),
    "a signal that does not come, and whose task goes on or is cancelled": replace(
        UNPAID, commands=asked("signal", "cancel")
    ),
    "a step that asks outside": repeated(ASKS),
    "a step that goes on without an answer": UNANSWERED,
    "a step that goes on without an answer, a crash": replace(UNANSWERED, crashes=1),
    "a step that is polled": repeated(POLLED),
    "a step that is polled, a crash": replace(POLLED, crashes=1),
    "a step that asks outside, and reminds": repeated(REMINDS),
    "a step whose plan is not found": repeated(LOSES_PLAN),
    "a step for two items": replace(ITEMS, copies=1),
    "a step after one for two items": repeated(THEN_ANOTHER),
    "a step for two items, their replies together, a crash": replace(
        ITEMS, crashes=1, together=True
    ),
    "a step for two items, their replies together, and repeated": replace(
        ITEMS, repeats=1, together=True
    ),
    "one of two steps is enough": ONE_OF_TWO,
    "one of two items is enough": ONE_ITEM,
    "a step, and a closing step": CLOSES,
    "a step, and a closing step, a crash": replace(CLOSES, crashes=1),
    "a step that is archived, and a closing step, resubmitted or undone": replace(
        CLOSES,
        plan=closing(briefly, on_failure=Archive()),
        endings=("done", "refused"),
        commands=asked("resubmit", "undo"),
    ),
    "a step that is cancelled, and a closing step": replace(
        CLOSES, endings=("done", "refused"), commands=asked("cancel", "cancel --no-undo")
    ),
    "three steps, of which one may end it early": ENDS_EARLY,
    "a step that adds another": ADDS,
    "a step that adds another, a crash": replace(ADDS, crashes=1),
    "a step that adds another, and its order is taken back": replace(
        ADDS, commands=asked("take back")
    ),
    "a step that adds another, before the next": replace(ADDS, plan=adding(one, two)),
    "a step that adds what it may not": replace(
        ADDS, endings=("done, and adds what it may not", "done, and adds a step")
    ),
    "two steps in a row whose results may be too long": replace(
        TOO_LONG, commands=asked("resolve a did", "cancel")
    ),
    "a step with heartbeats": repeated(BEATS),
    "a step that fails, and is retried for a quarter of an hour": replace(
        HAS_A_BUG, endings=("done", "unavailable")
    ),
    "a step whose replies may wait": replace(A_STEP, looks=True),
    "a step whose replies may wait, a crash": replace(fewer(A_STEP), looks=True, crashes=1),
    "one step, stale views": replace(A_STEP, stale=True),
    "a step whose scheduler may be behind": replace(A_STEP, looks=True, behind=True),
    "two steps in a row, the first for good": Configuration(plan=plan(bare, step("b", bare))),
}
VERIFY: dict[str, Configuration] = {
    "one of two steps is enough, a crash": replace(ONE_OF_TWO, crashes=1),
    "one of two steps is enough, cancelled": replace(ONE_OF_TWO, commands=asked("cancel")),
    "one of two steps is enough, taken back": replace(ONE_OF_TWO, commands=asked("take back")),
    "one of two items is enough, their replies together, a crash": replace(
        ONE_ITEM, crashes=1, together=True
    ),
    "a step with a bug, repaired in time or not": HAS_A_BUG,
    "a step of two agents, handed over": repeated(HANDED_OVER),
    "a step whose tables are restored": repeated(A_STEP, "reconcile"),
    "one step, a crash and a repeated message": replace(fewer(A_STEP), crashes=1, repeats=1),
    "one step, two schedulers in pieces": replace(A_STEP, schedulers=2),
    "one step, scheduler and supervisor in pieces": replace(
        fewer(A_STEP), schedulers=1, supervisors=1
    ),
    "one step, a scheduler in pieces and a crash": replace(fewer(A_STEP), schedulers=1, crashes=1),
    "one step, resubmitted, a repeated message": replace(
        KEPT, commands=asked("resubmit"), repeats=1
    ),
    "one step, all that a person may ask": replace(
        fewer(KEPT), commands=asked("resubmit", "undo", "resubmit --again", "cancel")
    ),
    "a step with a bug, and repeated messages": repeated(HAS_A_BUG),
    "two steps in a row, the second with a bug that has its effect": Configuration(
        plan=plan(one, replace(two, retry=LATER)),
        waits=40 * MINUTE,
        endings=("done", "done, and has a bug"),
        undo_endings=("done",),
    ),
    "two steps in a row, a crash": replace(fewer(A_ROW), crashes=1),
    "two steps in a row, a repeated message": replace(fewer(A_ROW), repeats=1),
    "two steps in a row, stale views and a crash": replace(fewer(A_ROW), crashes=1, stale=True),
    "one step, stale views and a crash": replace(A_STEP, crashes=1, stale=True),
    "one step, stale views and what a person may ask": replace(
        KEPT, commands=asked("resubmit", "undo", "erase"), stale=True
    ),
    "one unfenced step, stale views and a repeated message": replace(
        UNFENCED, repeats=1, stale=True
    ),
    "two steps in a row, two supervisors in pieces": replace(fewer(A_ROW), supervisors=2),
    "two steps in a row, resubmitted": replace(A_ROW, commands=asked("resubmit")),
    "two steps in a row, cancelled and erased, and begun again or not": replace(
        fewer(A_ROW), commands=asked("cancel", "erase", "resubmit --again")
    ),
    "one step, completed and taken back, a repeated message": replace(
        A_STEP, commands=asked("take back"), repeats=1
    ),
    "two steps in a row, completed and taken back, a crash": replace(
        fewer(A_ROW), commands=asked("take back"), crashes=1
    ),
    "two steps in a row, completed, the second taken back, repaired or not, and the first": replace(
        A_ROW,
        plan=plan(briefly, step("b", briefly, retry=ONCE)),
        endings=("done",),
        undo_endings=("done", "refused"),
        commands=asked("take back b", "take back", "resubmit"),
    ),
    "two steps in a row, completed, and the second taken back, a crash": replace(
        fewer(A_ROW), endings=("done",), commands=asked("take back b"), crashes=1
    ),
    "two steps in a row, their task out of time": near_end(one, two),
    "two unfenced steps in a row": Configuration(plan=plan(*unfenced_row)),
    "two unfenced steps in a row, a repeated message": replace(
        fewer(Configuration(plan=plan(*unfenced_row))), repeats=1
    ),
    "two steps in a row whose results may be too long, and repeated": repeated(
        TOO_LONG, "resolve a did", "cancel"
    ),
    "two steps in a row whose results may be too long, a crash": replace(
        TOO_LONG, commands=asked("resolve a did", "resubmit"), crashes=1
    ),
    "three steps in a row": Configuration(plan=plan(*row)),
    "two parallel steps": A_PAIR,
    "two parallel steps, every 15 s": replace(fewer(A_PAIR), tick=15_000),
    "two parallel steps after one": fewer(
        Configuration(plan=plan(one, step("b", one), step("c", one)))
    ),
    "two parallel steps, their replies together, a crash": replace(
        fewer(A_PAIR), crashes=1, together=True
    ),
    "two parallel steps and one after one of them, replies together, a crash": replace(
        Configuration(plan=plan(*pair, step("c", pair[0]))),
        endings=("done",),
        undo_endings=("done",),
        crashes=1,
        together=True,
    ),
    "a step with heartbeats, replies together, a crash": replace(
        repeated(BEATS), crashes=1, together=True
    ),
    "a step that asks outside, replies together, a crash": replace(
        ASKS, crashes=1, copies=1, together=True
    ),
    "one step after two parallel ones": Configuration(plan=plan(*pair, step("c", *pair))),
    # Of each of these a request is read twice, of those that are `repeated` another message, too.
    "two attempts at each of two agents": repeated(
        replace(SEVERAL, plan=plan(replace(one, agent="", agents=AGENTS)))
    ),
    "an unfenced step of two agents": repeated(
        replace(SEVERAL, plan=plan(replace(several, compensation=unfenced.compensation)))
    ),
    "a step of two agents, one of them held": HELD,
    "a step of two agents, one of them held, and a copy": replace(
        HELD, endings=("done",), copies=1
    ),
    "a step of two agents, one of them held, resolved as not happened": replace(
        HELD, endings=("done",), commands=asked("resolve a did-not")
    ),
    "a step of two agents, given back in every way": replace(
        HANDED_OVER,
        endings=("done", "given back", "given back, and proves it", "done, and given back"),
        copies=1,
    ),
    "a step of two agents, repaired": replace(
        SEVERAL,
        plan=plan(several, on_failure=Archive()),
        endings=("done", "refused", "refused, and proves it"),
        undo_endings=("done",),
        copies=1,
        commands=asked("resubmit --fresh-key", "resolve a did-not"),
    ),
    "a step of two agents whose plan is not found": replace(SEVERAL, loses_plan=True, copies=1),
    "a step whose plan is not found, and what a person may ask": replace(
        LOSES_PLAN, copies=1, commands=asked("resubmit", "undo")
    ),
    "two steps whose plan is not found": repeated(replace(LOSES_PLAN, plan=plan(one, two))),
    "a step that is repaired in every way": replace(
        REPAIRED,
        endings=("done", "answer lost", "refused"),
        copies=1,
        commands=asked("resubmit --fresh-key", "resolve a did", "resolve a did-not"),
    ),
    "a step that is undone and begun again": replace(
        REPAIRED, copies=1, commands=asked("undo", "resubmit --again")
    ),
    "a step that is given more time, and repeated": repeated(extended(briefly), "extend a"),
    "a step and its task that are given more time": replace(
        extended(briefly), copies=1, commands=asked("extend", "extend a")
    ),
    "a step that is polled, and fails or is cancelled": replace(
        POLLED,
        plan=plan(one),
        endings=("done", "begun, and is not done", "answer lost", "unavailable", "refused"),
        copies=1,
        commands=asked("cancel", "run"),
    ),
    "a polled step that is given more time, and whose tables are restored": replace(
        POLLED, commands=asked("extend a", "reconcile")
    ),
    "an unfenced step that is polled": repeated(replace(POLLED, plan=plan(unfenced))),
    "a step that is polled, whose replies may wait": replace(POLLED, looks=True, copies=1),
    "a step that asks outside, twice": repeated(replace(ASKS, plan=plan(one))),
    "a step that asks outside and reminds, a crash, and is cancelled": replace(
        REMINDS, crashes=1, commands=asked("cancel")
    ),
    "a step that asks outside and reminds, its agent held": replace(
        REMINDS, held=("worker",), holds=1
    ),
    "a step that asks outside, resubmitted": replace(
        ASKS, plan=plan(briefly, on_failure=Archive()), copies=1, commands=asked("resubmit")
    ),
    "a step for two items, each undone": repeated(ITEMS),
    "a step for two items, resubmitted": replace(
        ITEMS,
        plan=plan(replace(items, tolerate=0), on_failure=Archive()),
        copies=1,
        commands=asked("resubmit"),
    ),
    "an unfenced step whose replies may wait": replace(fewer(UNFENCED), looks=True),
    "two steps in a row whose replies may wait": replace(fewer(A_ROW), looks=True),
    "a step of two agents whose replies may wait": replace(SEVERAL, looks=True),
    "a step whose scheduler may be behind, a crash": replace(
        fewer(A_STEP), looks=True, behind=True, crashes=1
    ),
    "a step with heartbeats whose replies may wait": replace(BEATS, looks=True, copies=1),
    "an unfenced step with heartbeats": repeated(
        replace(BEATS, plan=plan(replace(beats, compensation=unfenced.compensation)))
    ),
}
EVERY = SMALL | VERIFY

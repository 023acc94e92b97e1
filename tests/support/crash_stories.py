"""Whole orders, and how each must end whatever happens to it; by what goes wrong in them."""

from datetime import timedelta

from roundsman.agents.callbacks import Callback
from roundsman.agents.not_yet import NotYet
from roundsman.definition.workflow import Archive
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import TransientError
from roundsman.model.states import TaskState
from roundsman.model.task import UNDO
from roundsman_testing.world.queues import REPLIES
from roundsman_testing.world.services import FOR_EVER
from tests.support.crash_story import (
    ADDING,
    BESIDE,
    CHECKED,
    DIAMOND,
    FORGETFUL,
    LINE,
    MINUTES,
    ORDER_ID,
    PAIR,
    PICKED,
    PICKING,
    SIGNALLED,
    SLEEPY,
    SLOW,
    TWO_AGENTS,
    UNDOABLE,
    Story,
    adds_legs,
    answers,
    asks,
    awaits_its_signal,
    both,
    breaker_opens,
    charge,
    held,
    is_down,
    is_taken,
    is_up,
    pack,
    paid,
    passes,
    patient,
    polls_a_job,
    refused,
    reserve,
    runs,
    send,
    shows_progress,
    signals,
    sleeps,
    starts_in,
    waits,
    worker,
)
from tests.support.machine_world import REPLY_TO, step, workflow

LEGS = ("leg[one]", "leg[two]", "leg[three]")
C, A, U, X = TaskState.COMPLETED, TaskState.ARCHIVED, TaskState.UNDONE, TaskState.CANCELLED

SIDES = tuple(step(f"side_{letter}") for letter in "abc")
BEHIND = tuple(step(f"behind_{one.name[-1]}", one) for one in SIDES)

WELL = {
    "success": Story(workflow=LINE, end=C, stands=("reserve", "charge", "ship")),
    "success without replyTo": Story(
        workflow=LINE, end=C, stands=("reserve", "charge", "ship"), options=ProcessingOptions()
    ),
    "success with retention zero": Story(
        workflow=workflow(reserve, retain_for=timedelta(milliseconds=1)),
        end=C,
        stands=("reserve",),
        options=ProcessingOptions(reply_to=REPLY_TO, retain_for=0),
    ),
    "parallel steps and a condition": Story(
        workflow=DIAMOND, end=C, stands=("reserve", "charge", "pack", "confirm")
    ),
    "three steps side by side, and one behind each": Story(
        workflow=workflow(*SIDES, *BEHIND),
        end=C,
        stands=tuple(one.name for one in (*SIDES, *BEHIND)),
    ),
    "a scheduled start": Story(
        workflow=PAIR, end=C, stands=("reserve", "charge"), options=starts_in(10 * MINUTES)
    ),
    "a start in a day": Story(
        workflow=PAIR, end=C, stands=("reserve", "charge"), options=starts_in(timedelta(days=1))
    ),
    "an order that is sent twice": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        acts=(send,),
    ),
}

TROUBLES = {
    "a transient fault": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").fails(),
    ),
    "an agent that hangs": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").hangs(),
    ),
    "an answer that is lost": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").loses_answer(),
    ),
    "a scheduler that is behind": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.mail(REPLIES).is_late(2 * MINUTES, times=2),
    ),
    "a scheduler that is down": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        acts=(asks("reserve"), lambda world: world.down("scheduler", 4 * MINUTES)),
    ),
    "a call that is done late": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").lands_late(timedelta(seconds=20)),
    ),
    "a declined card": Story(
        workflow=PAIR, end=A, stands=("reserve",), services=refused("charge"), alerts=1
    ),
    "a declined card beside a step": Story(
        workflow=workflow(reserve, charge, pack, on_failure=Archive()),
        end=A,
        stands=("reserve", "pack"),
        perhaps=("pack",),
        services=refused("charge"),
        alerts=1,
    ),
    "exhausted attempts": Story(
        workflow=workflow(reserve, patient, on_failure=Archive()),
        end=A,
        stands=("reserve",),
        services=is_down("charge"),
        alerts=1,
    ),
    "a service that hangs for ever": Story(
        workflow=PAIR,
        end=A,
        stands=("reserve",),
        services=lambda world: world.on("charge").hangs(FOR_EVER),
        alerts=1,
    ),
}

UNDOS = {
    "an undo": Story(workflow=UNDOABLE, end=U, stands=(), services=refused("ship")),
    "an undo beside a step": Story(
        workflow=BESIDE, end=U, stands=(), perhaps=("pack",), services=refused("charge")
    ),
    "an undo of a lost answer": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=lambda world: world.on("charge").loses_answer(FOR_EVER),
    ),
    "an undo of a call that is done late": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=both(
            lambda world: world.on("ship").lands_late(timedelta(seconds=29)), refused("ship")
        ),
    ),
    "an undo that fails at first": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=both(
            refused("ship"), lambda world: world.on("charge", UNDO).fails().loses_answer()
        ),
    ),
    "an undo that fails for good": Story(
        workflow=UNDOABLE,
        end=A,
        stands=("charge",),
        services=both(refused("ship"), lambda world: world.on("charge", UNDO).refuses()),
        alerts=1,
    ),
}

LONG_AND_SHARED = {
    "a step for each item": Story(
        workflow=PICKING,
        end=C,
        stands=("reserve", "pick[0]", "pick[1]", "ship"),
        services=lambda world: world.on("pick[1]").fails().loses_answer(),
    ),
    "an item that is left out": Story(
        workflow=PICKING,
        end=C,
        stands=("reserve", "pick[0]", "ship"),
        services=lambda world: world.on("pick[1]").loses_answer().refuses(),
    ),
    "more items fail than may": Story(
        workflow=PICKING,
        end=U,
        stands=(),
        perhaps=("pick[0]", "pick[1]"),
        services=both(
            refused("pick[0]"), lambda world: world.on("pick[1]").loses_answer().refuses()
        ),
    ),
    "a breaker that opens for a while": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        acts=(asks("charge"), breaker_opens),
    ),
    "a breaker that opens before an undo": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=refused("ship"),
        acts=(asks("charge", UNDO), breaker_opens),
    ),
    "a step that shows progress": Story(
        workflow=SLOW,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").loses_answer(),
        agents=worker(shows_progress),
    ),
    "a callback": Story(
        workflow=SLOW,
        end=C,
        stands=("reserve", "charge"),
        agents=worker(lambda request: Callback(within=5 * MINUTES)),
        acts=(waits, passes(MINUTES), answers("charge")),
    ),
    "a callback that its agent reminds of": Story(
        workflow=SLOW,
        end=C,
        stands=("reserve", "charge"),
        agents=worker(lambda request: Callback(within=5 * MINUTES, remind_every=MINUTES)),
        acts=(waits, passes(1.5 * MINUTES), answers("charge")),
    ),
    "steps that are added": Story(
        workflow=ADDING,
        end=C,
        stands=("reserve", *LEGS, "charge"),
        agents=adds_legs,
    ),
    "steps that are added and undone": Story(
        workflow=ADDING,
        end=U,
        stands=(),
        agents=adds_legs,
        services=refused("charge"),
    ),
    "a job that is polled": Story(
        workflow=SLOW,
        end=C,
        stands=("reserve", "charge"),
        agents=polls_a_job,
    ),
    "a job that is polled, and is cancelled": Story(
        workflow=SLOW,
        end=X,
        stands=(),
        agents=worker(lambda request: NotYet(again_in=MINUTES, within=60 * MINUTES)),
        acts=(asks("charge"), passes(1.5 * MINUTES), lambda world: world.cancel(ORDER_ID)),
    ),
    "a sleep between two steps": Story(
        workflow=SLEEPY,
        end=C,
        stands=("reserve", "ship"),
    ),
    "a sleep, and an order that is cancelled meanwhile": Story(
        workflow=SLEEPY,
        end=X,
        stands=(),
        acts=(sleeps, passes(MINUTES), lambda world: world.cancel(ORDER_ID)),
    ),
    "a signal that comes before its step": Story(
        workflow=SIGNALLED,
        end=C,
        stands=("reserve", "ship"),
        acts=(is_taken, signals),
    ),
    "a signal that comes while its step waits, twice": Story(
        workflow=SIGNALLED,
        end=C,
        stands=("reserve", "ship"),
        acts=(awaits_its_signal, signals, signals),
    ),
    "a signal that never comes": Story(workflow=SIGNALLED, end=U, stands=()),
    "an agent that another one stands in for": Story(
        workflow=TWO_AGENTS,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").fails(4),
    ),
    "an agent whose service promises that it did nothing": Story(
        workflow=TWO_AGENTS,
        end=C,
        stands=("reserve", "charge"),
        services=lambda world: world.on("charge").fails(3, TransientError("503", no_effect=True)),
    ),
    "an agent that did it before another one stands in": Story(
        workflow=TWO_AGENTS,
        end=C,
        stands=("reserve", "charge"),
        # One attempt is left for an agent that stands in at once, as the note of the first call
        # failed.
        services=lambda world: world.on("charge").loses_answer(3),
    ),
    "two agents that fail": Story(
        workflow=TWO_AGENTS, end=U, stands=("reserve",), services=is_down("charge")
    ),
}

PEOPLE = {
    "cancelled by the application": Story(
        workflow=UNDOABLE,
        end=X,
        stands=(),
        services=lambda world: world.on("ship").hangs(FOR_EVER),
        acts=(asks("ship"), lambda world: world.cancel(ORDER_ID)),
    ),
    "cancelled by the application without undo": Story(
        workflow=UNDOABLE,
        end=X,
        stands=("reserve", "charge"),
        services=lambda world: world.on("ship").hangs(FOR_EVER),
        acts=(asks("ship"), lambda world: world.cancel(ORDER_ID, undo=False)),
    ),
    "cancelled by an operator": Story(
        workflow=UNDOABLE,
        end=X,
        stands=(),
        services=lambda world: world.on("ship").hangs(FOR_EVER),
        acts=(asks("ship"), lambda world: world.operator.cancel(ORDER_ID)),
    ),
    "a part of it is taken back": Story(
        workflow=PICKED,
        end=C,
        stands=("reserve", "pick[0]"),
        services=lambda world: world.on("pick[1]", UNDO).fails().loses_answer(),
        acts=(runs, lambda world: world.operator.undo(ORDER_ID, "pick[1]")),
        before_end=("started", "completed"),
        at_end="partly_undone",
    ),
    "a part of it is taken back after an undo that failed": Story(
        workflow=PICKED,
        end=C,
        stands=("reserve", "pick[0]"),
        services=lambda world: world.on("pick[1]", UNDO).refuses(),
        acts=(
            runs,
            lambda world: world.operator.undo(ORDER_ID, "pick[1]"),
            runs,
            is_up("pick[1]", UNDO),
            lambda world: world.operator.resubmit(ORDER_ID),
        ),
        before_end=("started", "completed", "failed"),
        at_end="partly_undone",
        alerts=1,
    ),
    "cancelled before its time": Story(
        workflow=PAIR,
        end=X,
        stands=(),
        options=starts_in(timedelta(days=1)),
        acts=(is_taken, lambda world: world.cancel(ORDER_ID)),
        before_end=(),
    ),
    "an undo is asked for": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=lambda world: world.on("ship").hangs(FOR_EVER),
        acts=(asks("ship"), lambda world: world.operator.undo(ORDER_ID)),
    ),
    "an undo is asked for after a failure": Story(
        workflow=workflow(held, paid),
        end=U,
        stands=(),
        services=refused("charge"),
        acts=(runs, lambda world: world.operator.undo(ORDER_ID)),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "an undo is asked for after the lifetime of a key": Story(
        workflow=FORGETFUL,
        end=A,
        stands=("charge",),
        options=ProcessingOptions(reply_to=REPLY_TO),
        acts=(runs, passes(timedelta(days=2)), lambda world: world.operator.undo(ORDER_ID)),
        before_end=("started", "completed"),
        alerts=1,
    ),
    "resubmitted": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        services=refused("charge"),
        acts=(runs, is_up("charge"), lambda world: world.operator.resubmit(ORDER_ID)),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "resubmitted after an undo that failed": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=both(refused("ship"), lambda world: world.on("charge", UNDO).refuses()),
        acts=(runs, is_up("charge", UNDO), lambda world: world.operator.resubmit(ORDER_ID)),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "resubmitted under another plan": Story(
        workflow=workflow(held, paid, on_failure=Archive()),
        end=C,
        stands=("reserve", "check", "charge", "ship"),
        services=refused("charge"),
        acts=(
            runs,
            is_up("charge"),
            lambda world: world.deploy(CHECKED),
            lambda world: world.operator.resubmit(ORDER_ID, newest_plan=True),
        ),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "resubmitted with a correction": Story(
        workflow=workflow(held, paid, on_failure=Archive()),
        end=C,
        stands=("reserve", "charge"),
        services=refused("charge"),
        acts=(
            runs,
            is_up("charge"),
            lambda world: world.operator.resubmit(ORDER_ID, sets={"total": "38.90"}, used=True),
        ),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "resubmitted again after an undo": Story(
        workflow=UNDOABLE,
        end=C,
        stands=("reserve", "charge", "ship"),
        services=refused("ship"),
        acts=(runs, is_up("ship"), lambda world: world.operator.resubmit(ORDER_ID, again=True)),
        before_end=("started", "undone"),
    ),
    "resolved by a person": Story(
        workflow=UNDOABLE,
        end=U,
        stands=(),
        services=both(refused("ship"), lambda world: world.on("charge", UNDO).refuses()),
        acts=(runs, lambda world: world.operator.resolve(ORDER_ID, "charge", did=True)),
        before_end=("started", "failed"),
        alerts=1,
    ),
    "run before its time": Story(
        workflow=PAIR,
        end=C,
        stands=("reserve", "charge"),
        options=starts_in(timedelta(days=1)),
        acts=(is_taken, lambda world: world.operator.run_now(ORDER_ID)),
    ),
}

STORIES = WELL | TROUBLES | UNDOS | LONG_AND_SHARED | PEOPLE

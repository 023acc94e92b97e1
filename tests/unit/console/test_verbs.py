"""Verbs: what is typed on the command line and what a form gives mean the same."""

from collections.abc import Mapping

import pytest

from roundsman.model.corrections import Change
from roundsman_console.acts.bulk.verbs import PauseVerb, ResumeVerb
from roundsman_console.acts.callback.verbs import AnswerVerb, GivenResult
from roundsman_console.acts.hold.verbs import HoldVerb
from roundsman_console.acts.order.verbs import (
    CancelVerb,
    ExtendVerb,
    ResolveVerb,
    ResubmitVerb,
)
from roundsman_console.acts.reconcile.verbs import ReconcileVerb
from roundsman_console.acts.set_aside.verbs import RedriveVerb
from roundsman_console.acts.verb import FieldKind, Form, Verb
from roundsman_console.acts.verbs import VERBS
from roundsman_console.base.errors import InvalidArgument
from tests.console.verbs import VERBS as COMMANDS
from tests.console.verbs import options_of


@pytest.mark.parametrize(
    ("typed", "form", "meant"),
    [
        (
            {"steps": ["a", "b", "a"], "used": False, "sets": ["x=1", "y=b"], "removes": ["z"]},
            {"steps": " a  b a ", "sets": "x=1\n\ny=b\n", "removes": "z"},
            ResubmitVerb(
                steps=("a", "b"),
                sets=(Change(("x",), 1), Change(("y",), "b")),
                removes=(Change(("z",), removed=True),),
            ),
        ),
        (
            {"newest_plan": True, "fresh_key": True, "not_done": ["a"]},
            {"newest_plan": "yes", "fresh_key": "yes", "not_done": "a"},
            ResubmitVerb(newest_plan=True, fresh_key=True, not_done=("a",)),
        ),
        ({"keep": True}, {"keep": "yes"}, CancelVerb(keep=True)),
        ({"keep": False}, {}, CancelVerb()),
        (
            {"step": "pay", "did": True, "result": "[1]"},
            {"step": "pay", "did": "yes", "result": " [1] "},
            ResolveVerb(step="pay", did=True, result=[1]),
        ),
        (
            {"step": "pay", "did": False, "fresh_key": True},
            {"step": "pay", "did": "no", "fresh_key": "yes"},
            ResolveVerb(step="pay", did=False, fresh_key=True),
        ),
        ({"seconds": "10m"}, {"seconds": "10m", "step": ""}, ExtendVerb(seconds=600)),
        (
            {"agent": "mail", "seconds": "2h"},
            {"agent": "mail", "seconds": "2h"},
            HoldVerb(agent="mail", seconds=7200),
        ),
        (
            {"run": "b-1", "anyway": True},
            {"run": "b-1", "anyway": "yes"},
            ResumeVerb(run="b-1", anyway=True),
        ),
        ({"run": "b-1"}, {"run": "b-1", "anyway": "yes"}, PauseVerb(run="b-1")),
        (
            {"callback": "ord-1", "step": "approve", "result": "null"},
            {"callback": " ord-1 ", "step": "approve", "result": "null", "failed": ""},
            AnswerVerb(callback="ord-1", step="approve", result=GivenResult(None)),
        ),
        (
            {"callback": "eyJ", "failed": "Refused", "message": "no budget"},
            {"callback": "eyJ", "failed": "Refused", "message": "no budget"},
            AnswerVerb(callback="eyJ", failed="Refused", message="no budget"),
        ),
        (
            {"queue": "SchedulerQueue", "only": "5fea", "anyway": True},
            {"queue": "SchedulerQueue", "only": " 5fea ", "anyway": "yes"},
            RedriveVerb(queue="SchedulerQueue", only="5fea", anyway=True),
        ),
        (
            {"queue": "SchedulerQueue", "anyway": False},
            {"queue": "SchedulerQueue", "only": " "},
            RedriveVerb(queue="SchedulerQueue"),
        ),
        (
            {"restored_to": "1970-01-01T00:00:01Z", "rate": "5"},
            {"restored_to": "1970-01-01T00:00:01Z", "rate": " 5 "},
            ReconcileVerb(restored_to=1_000, rate=5.0),
        ),
        (
            {"restored_to": "1970-01-01T00:00:01Z"},
            {"restored_to": "1970-01-01T00:00:01Z", "rate": ""},
            ReconcileVerb(restored_to=1_000, rate=20.0),
        ),
    ],
)
def test_what_is_typed_and_what_a_form_gives_mean_the_same(
    typed: Mapping[str, object], form: Form, meant: Verb
) -> None:
    assert type(meant).read(typed) == meant
    assert type(meant).read_form(form) == meant


@pytest.mark.parametrize(
    ("verb", "form", "words"),
    [
        (ResolveVerb, {}, "Choose the step whose outcome you know."),
        (ResolveVerb, {"step": "pay"}, "Choose whether the step happened."),
        (ResolveVerb, {"step": "pay", "did": "no", "result": "1"}, "did not happen has no result"),
        (ResolveVerb, {"step": "pay", "did": "yes", "fresh_key": "yes"}, "needs no new key"),
        (ResolveVerb, {"step": "pay", "did": "yes", "result": "@/etc/x"}, "reads no files"),
        (ExtendVerb, {}, "'' is not a duration"),
        (HoldVerb, {"agent": "mail", "seconds": "8d"}, "at most 7d"),
        (ResubmitVerb, {"input": "[]"}, "The corrected input is not a JSON object."),
        (
            ResubmitVerb,
            {"input": "{}", "sets": "a=1"},
            "Give either --input, or --set and --remove.",
        ),
        (ResubmitVerb, {"used": "yes"}, "--used requires"),
        (ResubmitVerb, {"not_done": "a"}, "--not-done requires"),
        (ResubmitVerb, {"newest_plan": "yes", "steps": "a"}, "--step cannot be combined"),
        (ResubmitVerb, {"sets": "a=(masked)"}, "was left out of the printed command"),
        (ReconcileVerb, {}, "'' is not an instant with a time zone"),
        (ReconcileVerb, {"restored_to": "1970-01-01T00:00:01Z", "rate": "101"}, "0.5 to 100 per"),
        (AnswerVerb, {"result": "1"}, "Give the callback token, or the id of the order"),
        (AnswerVerb, {"callback": "eyJ"}, "Give either --result or --failed."),
        (AnswerVerb, {"callback": "eyJ", "result": "1", "failed": "No"}, "Give either --result or"),
        (AnswerVerb, {"callback": "eyJ", "result": "1", "message": "no"}, "requires --failed"),
        (AnswerVerb, {"callback": "eyJ", "failed": "not now"}, "takes the type of the error"),
        (AnswerVerb, {"callback": "eyJ", "result": "@/etc/x"}, "reads no files"),
    ],
)
def test_a_form_that_makes_no_sense_is_refused(verb: type[Verb], form: Form, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        verb.read_form(form)
    assert words in str(refused.value)


def test_an_argument_of_one_order_is_refused_for_several() -> None:
    for verb, given in (
        (ResubmitVerb, {"input": "{}"}),
        (ResolveVerb, {"step": "pay", "did": "yes", "result": "1"}),
    ):
        verb.read_form(given)
        with pytest.raises(InvalidArgument, match="works for one order only"):
            verb.read_form(given, many=True)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_argument_is_an_option_or_a_word_of_the_command(verb: type[Verb]) -> None:
    words = {one.name for one in COMMANDS[verb.name].params if not one.opts[0].startswith("-")}
    for one in verb.arguments():
        if one.option:
            assert {one.option, one.otherwise[0]} - {""} <= options_of(verb.name)
        elif one.kind is FieldKind.STEP:
            assert words == {"orders"}
        else:
            assert one.name in words
    assert {*verb.reason_options} <= options_of(verb.name)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_what_a_verb_does_is_its_help_without_the_examples(verb: type[Verb]) -> None:
    assert verb.does()
    assert "Example" not in verb.does()
    assert "\n" not in verb.does()
    assert verb.help().startswith(verb.does().split(".")[0])

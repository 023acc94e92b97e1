"""Verbs: what is typed on the command line and what a form gives mean the same."""

from collections.abc import Mapping

import pytest

from roundsman.model.corrections import Change
from roundsman_console.inspector.errors import InvalidArgument
from roundsman_console.inspector.verbs import VERBS
from roundsman_console.inspector.verbs.agents import Hold
from roundsman_console.inspector.verbs.bulk_runs import Pause, Resume
from roundsman_console.inspector.verbs.orders import Cancel, Extend, Resolve, Resubmit
from roundsman_console.inspector.verbs.verb import Form, Kind, Verb
from tests.console.verbs import VERBS as COMMANDS
from tests.console.verbs import options_of


@pytest.mark.parametrize(
    ("typed", "form", "meant"),
    [
        (
            {"steps": ["a", "b", "a"], "used": False, "sets": ["x=1", "y=b"], "removes": ["z"]},
            {"steps": " a  b a ", "sets": "x=1\n\ny=b\n", "removes": "z"},
            Resubmit(
                steps=("a", "b"),
                sets=(Change(("x",), 1), Change(("y",), "b")),
                removes=(Change(("z",), removed=True),),
            ),
        ),
        (
            {"newest_plan": True, "fresh_key": True, "not_done": ["a"]},
            {"newest_plan": "yes", "fresh_key": "yes", "not_done": "a"},
            Resubmit(newest_plan=True, fresh_key=True, not_done=("a",)),
        ),
        ({"keep": True}, {"keep": "yes"}, Cancel(keep=True)),
        ({"keep": False}, {}, Cancel()),
        (
            {"step": "pay", "did": True, "result": "[1]"},
            {"step": "pay", "did": "yes", "result": " [1] "},
            Resolve(step="pay", did=True, result=[1]),
        ),
        (
            {"step": "pay", "did": False, "fresh_key": True},
            {"step": "pay", "did": "no", "fresh_key": "yes"},
            Resolve(step="pay", did=False, fresh_key=True),
        ),
        ({"seconds": "10m"}, {"seconds": "10m", "step": ""}, Extend(seconds=600)),
        (
            {"agent": "mail", "seconds": "2h"},
            {"agent": "mail", "seconds": "2h"},
            Hold(agent="mail", seconds=7200),
        ),
        (
            {"run": "b-1", "anyway": True},
            {"run": "b-1", "anyway": "yes"},
            Resume(run="b-1", anyway=True),
        ),
        ({"run": "b-1"}, {"run": "b-1", "anyway": "yes"}, Pause(run="b-1")),
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
        (Resolve, {}, "Choose the step whose outcome you know."),
        (Resolve, {"step": "pay"}, "Choose whether the step happened."),
        (Resolve, {"step": "pay", "did": "no", "result": "1"}, "did not happen has no result"),
        (Resolve, {"step": "pay", "did": "yes", "fresh_key": "yes"}, "needs no new key"),
        (Resolve, {"step": "pay", "did": "yes", "result": "@/etc/x"}, "reads no files"),
        (Extend, {}, "'' is not a duration"),
        (Hold, {"agent": "mail", "seconds": "8d"}, "at most 7d"),
        (Resubmit, {"input": "[]"}, "The corrected input is not a JSON object."),
        (Resubmit, {"input": "{}", "sets": "a=1"}, "Give either --input, or --set and --remove."),
        (Resubmit, {"used": "yes"}, "--used requires"),
        (Resubmit, {"not_done": "a"}, "--not-done requires"),
        (Resubmit, {"newest_plan": "yes", "steps": "a"}, "--step cannot be combined"),
        (Resubmit, {"sets": "a=(masked)"}, "was left out of the printed command"),
    ],
)
def test_a_form_that_makes_no_sense_is_refused(verb: type[Verb], form: Form, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        verb.read_form(form)
    assert words in str(refused.value)


def test_an_argument_of_one_order_is_refused_for_several() -> None:
    for verb, given in (
        (Resubmit, {"input": "{}"}),
        (Resolve, {"step": "pay", "did": "yes", "result": "1"}),
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
        elif one.kind is Kind.STEP:
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

"""What each profile has, and that no profile has a queue, a table or a role less."""

from functools import cache

import pytest

from roundsman_dev.check.reading import at, chosen, event_sources, is_made, of_type
from roundsman_dev.template import Document, Template, mapping_of, part
from tests.project import AGENTS, SERVICE_URLS, TEMPLATE, translate
from tests.support.template_reading import NO_VALUE, alarms, allowed_to, environment

PROFILES = ("lean", "standard", "full")
URGENT = {f"{agent}UrgentRequestQueue" for agent in AGENTS}
IN_STANDARD = {
    "AccountConcurrencyAlarm",
    "AlertsFailedAlarm",
    "HandlerErrorsAlarm",
    "SchedulerErrorsAlarm",
    "SchedulerThrottlesAlarm",
    "StepsWithoutHandlerAlarm",
    "SubmissionErrorsAlarm",
    "SubmissionThrottlesAlarm",
    "SupervisorErrorsAlarm",
    "SupervisorHasNotRunAlarm",
    "SupervisorThrottlesAlarm",
    "TasksReadThrottlesAlarm",
    "TasksWriteThrottlesAlarm",
    "TroubledTasksAlarm",
    "UndoneShareAlarm",
    *(f"{agent}ErrorsAlarm" for agent in AGENTS),
}


@cache
def of(profile: str) -> Document:
    return translate({"Engine.Profile": profile})


def made(template: Document) -> dict[str, str]:
    """The type of each resource that the stack has."""
    resources = part(template, "Resources")
    return {
        name: str(mapping_of(each)["Type"])
        for name, each in resources.items()
        if is_made(template, name)
    }


def test_lean_has_one_alarm_which_is_raised_if_the_supervisor_is_not_started_or_fails() -> None:
    [(name, alarm)] = alarms(of("lean")).items()
    assert name == "SupervisorAlarm"
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "SupervisorFunction"}}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert (alarm["TreatMissingData"], alarm["EvaluationPeriods"]) == ("missing", 3)
    for actions in ("AlarmActions", "InsufficientDataActions", "OKActions"):
        assert alarm[actions] == [{"Ref": "AlertTopic"}], actions


def test_standard_has_the_alarms_on_what_no_pass_can_see() -> None:
    assert set(alarms(of("standard"))) == IN_STANDARD


def test_full_is_the_default_and_has_all_alarms_but_that_of_lean() -> None:
    every = of_type(of("full"), "AWS::CloudWatch::Alarm")
    assert set(alarms(of("full"))) == set(every) - {"SupervisorAlarm"}
    assert set(alarms(translate())) == set(alarms(of("full")))


@pytest.mark.parametrize("profile", ["lean", "standard"])
def test_a_change_of_the_profile_loses_nothing_but_alarms_metrics_mappings_and_the_alert_key(
    profile: str,
) -> None:
    """No queue, table, function, role or topic goes, or is made anew: the name of none, and the key
    of no table, depends on the profile. A function publishes another version, since the scheduler
    and the supervisor are told the profile, and keeps the former one."""
    full, other = (
        {name: kind for name, kind in made(of(each)).items() if kind != "AWS::Lambda::Version"}
        for each in ("full", profile)
    )
    gone = {kind for name, kind in full.items() if name not in other}
    assert gone <= {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Logs::MetricFilter",
        *(("AWS::Lambda::EventSourceMapping", "AWS::KMS::Key") if profile == "lean" else ()),
    }
    assert {other[name] for name in other.keys() - full} <= {"AWS::CloudWatch::Alarm"}
    for kind in ("AWS::SQS::Queue", "AWS::DynamoDB::Table"):
        assert of_type(of("full"), kind) == of_type(of(profile), kind)


def test_the_mappings_of_urgent_queues_have_the_names_that_sam_gave_them() -> None:
    """Under another name, an upgrade would make them anew."""
    mappings = of_type(of("full"), "AWS::Lambda::EventSourceMapping")
    assert {f"{agent}FunctionUrgentRequests" for agent in AGENTS} <= mappings.keys()


@pytest.mark.parametrize("profile", PROFILES)
def test_lean_alone_reads_no_urgent_queue_and_its_scheduler_and_supervisor_know_it(
    profile: str,
) -> None:
    template = of(profile)
    read = {queue for queue, _, _ in event_sources(template)}
    assert URGENT & read == (set() if profile == "lean" else URGENT)
    for function in ("SchedulerFunction", "SupervisorFunction"):
        told = environment(template, function)["URGENT_QUEUES"]
        assert told == ("false" if profile == "lean" else "true")


def test_no_mapping_is_disabled_in_any_profile() -> None:
    for profile in PROFILES:
        assert all(one.get("Enabled", True) is True for _, _, one in event_sources(of(profile)))


@pytest.mark.parametrize("profile", PROFILES)
def test_every_mapping_limits_the_instances_that_a_burst_may_start(profile: str) -> None:
    """What Lambda refuses for want of instances is overtaken, and its attempt may count."""
    for queue, _, mapping in event_sources(of(profile)):
        most = chosen(of(profile), at(mapping, "ScalingConfig", "MaximumConcurrency"))
        assert isinstance(most, int), queue


def test_in_a_small_account_every_mapping_has_the_fewest_instances() -> None:
    """Whatever the blocks say: a new account has a quota of ten. The alarm on the account's
    instances is raised at four fifths of that."""
    settings = {"Engine.SmallAccount": "true", "Payment.Concurrency": "50"}
    template = translate({**settings, "Engine.SchedulerConcurrency": "100"})
    found = [
        chosen(template, at(mapping, "ScalingConfig", "MaximumConcurrency"))
        for _, _, mapping in event_sources(template)
    ]
    assert set(found) == {2}
    assert len(found) == 2 + 3 * len(AGENTS)
    alarm = alarms(template)["AccountConcurrencyAlarm"]
    assert chosen(template, alarm["Threshold"]) == 8


def test_lean_has_no_key_and_no_right_to_one() -> None:
    template = of("lean")
    assert "AWS::KMS::Key" not in made(template).values()
    for role in of_type(template, "AWS::IAM::Role"):
        assert not [one for one in allowed_to(template, role) if "AlertKey" in str(one)], role
    topic = of_type(template, "AWS::SNS::Topic")["AlertTopic"]
    assert chosen(template, topic["KmsMasterKeyId"]) == NO_VALUE


def test_lean_has_no_metric_of_orders_and_standard_has_those_of_full() -> None:
    def filters(profile: str) -> set[str]:
        found = made(of(profile)).items()
        return {name for name, kind in found if kind == "AWS::Logs::MetricFilter"}

    assert not filters("lean")
    assert filters("standard") == filters("full") != set()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_dashboard_is_made_on_request_and_by_default_in_full(profile: str) -> None:
    for wanted, has in (("", profile == "full"), ("true", True), ("false", False)):
        template = translate({"Engine.Profile": profile, "Engine.Dashboard": wanted})
        assert ("AWS::CloudWatch::Dashboard" in made(template).values()) is has


@pytest.mark.parametrize("profile", PROFILES)
def test_the_supervisor_watches_the_stack_where_alarms_do_not(profile: str) -> None:
    template = of(profile)
    seconds = environment(template, "SupervisorFunction")["BACKLOG_ALERT_SECONDS"]
    assert seconds == ("" if profile == "full" else "1200")
    sids = {str(one["Sid"]) for one in allowed_to(template, "SupervisorRole")}
    needed = {
        "CountsTheMessagesOfEveryQueue",
        "FindsTheQueuesOfAgents",
        "StoresWhatIsWrongWithTheStack",
    }
    assert needed & sids == (set() if profile == "full" else needed)


@pytest.mark.exhaustive
def test_lean_alerts_as_few_undone_orders_as_the_alarm_on_their_share_asks_for() -> None:
    def alerted(**settings: str) -> str:
        values = {f"Engine.{name}": value for name, value in settings.items()}
        return environment(translate(values), "SupervisorFunction")["UNDONE_ALERT_COUNT"]

    assert alerted(Profile="full") == alerted(Profile="standard") == "20"
    assert alerted(Profile="lean") == "5"
    assert alerted(Profile="lean", UndoneAlarmPercent="0") == "20"


def test_the_profile_is_among_the_settings_that_tools_read() -> None:
    outputs = part(Template.read(TEMPLATE).translate({**SERVICE_URLS}), "Outputs")
    assert "Profile=full" in str(outputs["EngineSettings"])

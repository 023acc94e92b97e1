"""The guards of the doctor: it mends only what is safe, and what it never saw is not well."""

from tools.mutants.mutant import Mutant

TASK_FINDINGS = "console/roundsman_console/facts/doctor/tasks.py"
TASKS = "tests/console/test_doctor_tasks.py"

DOCTOR = (
    Mutant(
        name="what-has-no-plan-is-not-inspected",
        file=TASK_FINDINGS,
        old="fixable = isinstance(facts.plans.get(task.plan), Plan)",
        new="fixable = True",
        tests=(f"{TASKS}::test_what_has_no_plan_is_not_inspected_since_that_would_archive_it",),
        why="the doctor archives a task whose plan could have been restored",
    ),
    Mutant(
        name="what-could-not-be-looked-at-is-not-well",
        file="console/roundsman_console/facts/doctor/report.py",
        old="all(one.lacking for one in self.unseen)",
        new="bool(self.unseen or True)",
        tests=(
            "tests/console/test_doctor_report.py::test_what_could_not_be_looked_at_is_no_clean_bill_of_health",
        ),
        why="a doctor without rights says that all is well",
    ),
    Mutant(
        name="a-mapping-that-was-not-seen-is-not-missing",
        file="console/roundsman_console/facts/doctor/queues.py",
        old="if mappings is not None and (",
        new="if (mappings := mappings or []) is not None and (",
        tests=(
            "tests/console/test_doctor.py::test_what_may_not_be_read_is_reported_and_the_rest_is_read",
        ),
        why="the report for somebody without rights is that nothing reads the queues",
    ),
)

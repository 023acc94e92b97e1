"""Records of steps for tests, by the names of the stored attributes."""

from dataclasses import replace

from roundsman.aws.dynamodb import stored_step as form
from roundsman.model.task import StepRecord


def step_record(**attributes: object) -> StepRecord:
    """Return the step that is stored with these attributes of StoredStep."""
    return form.step_record(form.StoredStep(**attributes))  # type: ignore[arg-type]  # a wrong one fails


def stored_step(record: StepRecord) -> form.StoredStep:
    """Return the attributes of the step as they are stored."""
    return form.stored_step(record)


def changed_step(record: StepRecord, **attributes: object) -> StepRecord:
    """Return the step with other values of these stored attributes."""
    return form.step_record(replace(form.stored_step(record), **attributes))  # type: ignore[arg-type]  # so

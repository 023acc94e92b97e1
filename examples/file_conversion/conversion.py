"""A file is converted by a service that works for minutes or hours, and is published then.

The service has one job for each key: POST /jobs with a key that it knows returns that job, and
DELETE /jobs/<key> stops the job and removes its file, also if there is none.
"""

from datetime import timedelta
from functools import cache
from typing import Literal, TypedDict

from roundsman import (
    Agent,
    Compensation,
    Json,
    NotYet,
    PermanentError,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.agents.http import RemoteService


class Conversion(TypedDict):
    """What an order must be."""

    source: str
    format: Literal["pdf", "mp4"]


BRIEFLY = timedelta(seconds=30)  # for one call, not for the job

convert = Step(
    name="convert",
    agent="converter",
    complete_within=BRIEFLY,
    compensation=Compensation(fences_late_performs=True),
)
publish = Step(
    name="publish",
    agent="library",
    complete_within=BRIEFLY,
    after=(convert,),
    compensation=Compensation(fences_late_performs=True),
)
file_conversion = Workflow(
    name="file_conversion",
    input=Conversion,
    steps=(convert, publish),
    complete_within=timedelta(hours=6),
    on_failure=Undo(),
)

converter = Agent("converter", {file_conversion.name: file_conversion})
library = Agent("library", {file_conversion.name: file_conversion})
service = cache(RemoteService.from_env)


@converter.performs(convert)
def converted(request: StepRequest) -> "Json | NotYet":
    """Begin the job, or look at it: the same call under the same key."""
    job = service().call(
        "POST",
        "jobs",
        key=request.idempotency_key,
        body={"source": request.input["source"], "format": request.input["format"]},
        time_left=request.time_left(),
        returns=("state", "file"),
    )
    if job["state"] == "failed":
        raise PermanentError("NotConverted", "the service cannot convert this file")
    if job["state"] != "done":
        return NotYet(again_in=timedelta(minutes=1), within=timedelta(hours=4))
    return {"file": job["file"]}


@converter.compensates(convert)
def removed(request: StepRequest) -> None:
    """Stop the job of the perform's key, and remove what it has made."""
    service().call(
        "DELETE",
        "jobs",
        request.perform_key,
        key=request.idempotency_key,
        time_left=request.time_left(),
    )


@library.performs(publish)
def published(request: StepRequest) -> Json:
    """Add the file to the library."""
    found = request.results["convert"]
    return service().call(
        "PUT",
        "library",
        request.task_id,
        key=request.idempotency_key,
        body={"made": found},
        time_left=request.time_left(),
    )


@library.compensates(publish)
def taken_out(request: StepRequest) -> None:
    """Take the file out of the library. It is no error if it is not there."""
    service().call(
        "DELETE",
        "library",
        request.task_id,
        key=request.idempotency_key,
        time_left=request.time_left(),
    )

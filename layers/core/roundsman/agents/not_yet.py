"""Polls: a step looks at an outside job, again and again, until it is done.

    @converter.performs(convert)
    def perform(request: StepRequest) -> "Json | NotYet":
        job = service.start(key=request.idempotency_key, file=request.input["file"])
        if job.state == "running":
            return NotYet(again_in=timedelta(minutes=1), within=timedelta(hours=2))
        return {"file": job.output}

Each poll is a call of the same function under the same idempotency key. So the function asks the
service for the job of that key, and has it begun if there is none. Between two polls nothing runs.
"""

from dataclasses import dataclass
from datetime import timedelta

from roundsman.agents.outcomes import LONGEST_WAIT
from roundsman.errors import kind_of
from roundsman.model.checks import SHORTEST_WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Returned by a perform function that polls an outside job which is not done.

    That is no failure, and no attempt is counted. Raises TypeError if a value is not a timedelta,
    and ValueError if it is out of range.
    """

    again_in: timedelta
    """The time until the function is called again: at least 1 s, and at most `within`."""
    within: timedelta
    """The time in which the job must be done, at most 365 days, counted from the first NotYet under
    the idempotency key; the values of later ones are not used. After it, the step has failed."""

    def __post_init__(self) -> None:
        for name, value in (("again_in", self.again_in), ("within", self.within)):
            if not isinstance(value, timedelta):
                raise TypeError(f"{name} must be a timedelta, not {kind_of(value)}")
        if not SHORTEST_WAIT <= self.within <= LONGEST_WAIT:
            raise ValueError(f"within must be from 1 s to 365 days, not {self.within}")
        if not SHORTEST_WAIT <= self.again_in <= self.within:
            raise ValueError(
                f"again_in must be from 1 s to within ({self.within}), not {self.again_in}"
            )

"""The workflow {{workflow}}."""

from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict

from roundsman import Compensation, Step, Text, Undo, Workflow


class {{input}}(TypedDict):
    """What an order of this workflow must be."""

    customer: Annotated[str, Text(200)]
    refuse: NotRequired[Annotated[str, Text(64)]]
    """The agent whose stand-in service refuses the order; for tests."""


{{steps}}
{{workflow}} = Workflow(
    name="{{workflow}}",
    input={{input}},
    steps=({{names}}),
    complete_within=timedelta(hours=2),
    on_failure=Undo(),
    retain_for=timedelta(days=7),
)

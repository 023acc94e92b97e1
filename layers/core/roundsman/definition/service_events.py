"""Which events of AWS's services become orders of a workflow: `Workflow(events=(From(...),))`.

A service sends what happened, and knows neither workflows nor order ids. So a workflow declares the
events that are its orders, and how the id and the input of an order are taken from one.
"""

import re
from dataclasses import dataclass

from roundsman.definition.expressions import compile_expression
from roundsman.errors import DefinitionError
from roundsman.model.checks import check_name

KINDS = ("topic", "bucket", "source")


@dataclass(frozen=True, kw_only=True)
class From:
    """Events of AWS's services that become orders of a workflow.

    Name exactly one of `topic`, `bucket` and `source`; `*` in it stands for any text. The event is
    the message that was published to a topic, one record of a notification of a bucket, or the
    `detail` of an event of EventBridge. Raises DefinitionError for a declaration that can never
    apply.
    """

    topic: str | None = None
    """The name of an SNS topic."""
    bucket: str | None = None
    """The name of an S3 bucket."""
    source: str | None = None
    """The `source` of events of EventBridge, such as `com.example.shop` or `aws.ecs`."""
    detail_type: str | None = None
    """The `detail-type` of these events; None for every one. Only with `source`."""
    id: str | None = None
    """A JMESPath expression over the event that gives the order's id: a text or a whole number.
    What does not fit the rules of an id is hashed. None: the field `orderId` of the event, or, if
    it has none, what identifies the event itself: the id that SNS or EventBridge gave it, or the
    hash of the record of S3."""
    input: str | None = None
    """A JMESPath expression over the event that gives the order's input, such as
    `{customer: buyer.id, lines: items}`. None: the event itself."""
    signal: str | None = None
    """The name of a signal for which a step of the workflow waits. The event begins the order with
    its id and is a signal to it, whose data is the order's input; if there is such an order, it is
    the signal alone. Two events with the same content are one. None: the event is an order."""

    def __post_init__(self) -> None:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"it has {' and '.join(given)}" if given else "it has none of them"
            raise DefinitionError(f"From(...) must have topic, bucket or source: {found}")
        if self.detail_type is not None and self.source is None:
            raise DefinitionError("From(...): detail_type is only for events with a source")
        for name in (*given, "detail_type"):
            value: object = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str) or not value:
                raise DefinitionError(f"From(...): {name} must be a text, not {value!r}")
            if name in ("topic", "bucket") and ":" in value:
                raise DefinitionError(
                    f"From(...): {name} is {value!r}; write the name alone, without the ARN before "
                    "it, which is another one in each account"
                )
        if self.signal is not None:
            check_name("From(...): signal", self.signal)
            if self.id is None:
                raise DefinitionError(
                    f"From(...) with signal={self.signal!r} must have id, an expression for what "
                    "all events of one order have, such as order.number"
                )
        for name in ("id", "input"):
            if (expression := getattr(self, name)) is not None:
                compile_expression(f"From(...): {name}", expression)

    def takes(self, kind: str, name: str, detail_type: str = "") -> bool:
        """Whether an event is one of these. `kind` is one of KINDS, `name` that of its origin."""
        wanted = getattr(self, kind)
        if wanted is None or not is_like(wanted, name):
            return False
        return self.detail_type is None or is_like(self.detail_type, detail_type)

    def __str__(self) -> str:
        """The declaration as it is written, without its expressions."""
        named = ((name, getattr(self, name)) for name in (*KINDS, "detail_type"))
        return f"From({', '.join(f'{name}={value!r}' for name, value in named if value)})"


def is_like(pattern: str, text: str) -> bool:
    """Whether a text is what a pattern says, in which `*` is any text and `?` any character."""
    parts = (".*" if one == "*" else "." if one == "?" else re.escape(one) for one in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None

"""Reads which topics, buckets and rules the policy of the SubmissionQueue admits.

The policy is where `SubmitterSources` is. A setting of the function would need a new version of it
with each change, and the list is too long for what gives a version its name. The function may read
the attributes of its queue anyway, and no setting can differ from what SQS does.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.ports import SOURCES_STATEMENT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from roundsman.submission.service_events import ListedSources

SOURCE_ARN = "aws:SourceArn"


@dataclass
class SourcesOfQueue:
    """The sources that the policy of a queue lists.

    They are read at the first envelope, and again before one is refused: a deployment may have
    added its source since.
    """

    sqs: "SQSClient"
    queue_url: str
    _known: "ListedSources | None" = None

    def lists(self, service: str, arn: str | None) -> bool:
        """Whether this topic, bucket or rule is one of them; None for any of the service.

        Raises TryAgain and CallRefused if the policy cannot be read.
        """
        if self._known is not None and self._known.lists(service, arn):
            return True
        # Only an application with such events needs this module.
        from roundsman.submission.service_events import ListedSources

        with aws_errors("reading the policy of the SubmissionQueue"):
            found = self.sqs.get_queue_attributes(
                QueueUrl=self.queue_url, AttributeNames=["Policy"]
            )
        self._known = ListedSources(sources_in(found.get("Attributes", {}).get("Policy")))
        return self._known.lists(service, arn)


def sources_in(policy: str | None) -> Sequence[str]:
    """Return the ARNs that a queue's policy admits as sources; none if it has no such statement."""
    if not policy:
        return ()
    document: object = json.loads(policy)
    given = document.get("Statement") if isinstance(document, Mapping) else None
    for statement in given if isinstance(given, list) else [given]:
        if isinstance(statement, Mapping) and statement.get("Sid") == SOURCES_STATEMENT:
            arns = statement["Condition"]["ArnLike"][SOURCE_ARN]
            return (arns,) if isinstance(arns, str) else tuple(arns)
    return ()

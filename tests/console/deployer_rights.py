"""The rights that a deployment needs, by the type of a resource.

They are those of the handlers with which CloudFormation creates, updates and deletes a resource of
the type, as its schema lists them, without the features that no template of Roundsman uses. A test
compares them with the schemas.
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ANY = "*"


@dataclass(frozen=True, slots=True)
class Right:
    """Actions on one kind of resource."""

    resource: str
    """The ARN, with `{partition}`, `{region}`, `{account}`, `{stack}` and `{name}`, which stands
    for the rest of a resource's name."""
    actions: tuple[str, ...]
    passed_to: str = ""
    """The service to which a role is passed; empty for other actions."""

    def arn(self, values: Mapping[str, str]) -> str:
        """Return the ARN with these values."""
        return self.resource.format_map(values)


def _regional(service: str, name: str) -> str:
    return f"arn:{{partition}}:{service}:{{region}}:{{account}}:{name}"


def _of(service: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{service}:{name}" for name in names)


_ROLE = "arn:{partition}:iam::{account}:role/{stack}-{name}"
_QUEUES = (_regional("sqs", "{stack}-{name}"), _regional("sqs", "{stack}_{name}"))
_TOPIC = _regional("sns", "{stack}-{name}")
_FUNCTION = _regional("lambda", "function:{stack}-{name}")
_LAYER = _regional("lambda", "layer:{stack}-{name}")
_MAPPING = _regional("lambda", "event-source-mapping:{name}")
_LOGS = _regional("logs", "log-group:/aws/lambda/{stack}/{name}")
_ALARM = _regional("cloudwatch", "alarm:{stack}-{name}")
_KEY = _regional("kms", "key/{name}")
_PAYLOADS = "arn:{partition}:s3:::{stack}-{name}"  # if the stack's name has small letters only
_STACK = (
    _regional("cloudformation", "stack/{stack}/{name}"),
    _regional("cloudformation", "stack/{stack}-{name}"),
)
_SAM_STACK = _regional("cloudformation", "stack/aws-sam-cli-managed-default/{name}")
_SAM_BUCKET = "arn:{partition}:s3:::aws-sam-cli-managed-default-{name}"
_SAM_TRANSFORM = "arn:{partition}:cloudformation:{region}:aws:transform/{name}"

_CHANGE_STACKS = _of(
    "cloudformation",
    *("CreateChangeSet", "CreateStack", "DeleteChangeSet", "DeleteStack", "DescribeChangeSet"),
    *("DescribeStackEvents", "DescribeStacks", "ExecuteChangeSet", "GetTemplate"),
    *("GetTemplateSummary", "ListStackResources", "UpdateStack"),
)

DEPLOYMENT: tuple[Right, ...] = (
    *(Right(stack, _CHANGE_STACKS) for stack in _STACK),
    Right(_SAM_TRANSFORM, _of("cloudformation", "CreateChangeSet")),
    Right(
        _SAM_STACK,
        _of(
            "cloudformation",
            *("CreateChangeSet", "DescribeChangeSet", "DescribeStackEvents", "DescribeStacks"),
            *("ExecuteChangeSet", "GetTemplateSummary"),
        ),
    ),
    Right(
        _SAM_BUCKET,
        _of(
            "s3",
            *("CreateBucket", "GetBucketLocation", "GetBucketPolicy", "ListBucket"),
            *("PutBucketPolicy", "PutBucketPublicAccessBlock", "PutBucketTagging"),
            *("PutBucketVersioning", "PutEncryptionConfiguration"),
        ),
    ),
    Right(f"{_SAM_BUCKET}/{{name}}", _of("s3", "GetObject", "GetObjectVersion", "PutObject")),
)
"""What the caller of `sam deploy --resolve-s3` does itself: the stacks, and the bucket of SAM."""

RIGHTS: Mapping[str, tuple[Right, ...]] = {
    "AWS::CloudFormation::Stack": tuple(Right(stack, _CHANGE_STACKS) for stack in _STACK),
    "AWS::CloudWatch::Alarm": (
        Right(
            _ALARM,
            _of(
                "cloudwatch",
                *("DeleteAlarms", "ListTagsForResource", "PutMetricAlarm", "TagResource"),
                "UntagResource",
            ),
        ),
        Right(ANY, _of("cloudwatch", "DescribeAlarms")),
    ),
    "AWS::CloudWatch::CompositeAlarm": (
        Right(
            _ALARM,
            _of(
                "cloudwatch",
                *("DeleteAlarms", "ListTagsForResource", "PutCompositeAlarm", "TagResource"),
                "UntagResource",
            ),
        ),
        Right(ANY, _of("cloudwatch", "DescribeAlarms")),
    ),
    "AWS::CloudWatch::Dashboard": (
        Right(
            "arn:{partition}:cloudwatch::{account}:dashboard/{stack}-{name}",
            _of(
                "cloudwatch",
                *("DeleteDashboards", "GetDashboard", "ListTagsForResource", "PutDashboard"),
                *("TagResource", "UntagResource"),
            ),
        ),
    ),
    "AWS::DynamoDB::Table": (
        Right(
            _regional("dynamodb", "table/{stack}-{name}"),
            _of(
                "dynamodb",
                *("CreateTable", "DeleteTable", "DescribeContinuousBackups"),
                *("DescribeContributorInsights", "DescribeKinesisStreamingDestination"),
                *("DescribeTable", "DescribeTimeToLive", "GetResourcePolicy"),
                *("ListTagsOfResource", "TagResource", "UntagResource"),
                *("UpdateContinuousBackups", "UpdateContributorInsights", "UpdateTable"),
                "UpdateTimeToLive",
            ),
        ),
    ),
    "AWS::IAM::ManagedPolicy": (
        Right(
            "arn:{partition}:iam::{account}:policy/{stack}-{name}",
            _of(
                "iam",
                *("CreatePolicy", "CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion"),
                *("GetPolicy", "GetPolicyVersion", "ListEntitiesForPolicy"),
                *("ListPolicyTags", "ListPolicyVersions", "TagPolicy", "UntagPolicy"),
            ),
        ),
    ),
    "AWS::IAM::Policy": (
        Right(_ROLE, _of("iam", "DeleteRolePolicy", "GetRolePolicy", "PutRolePolicy")),
    ),
    "AWS::IAM::Role": (
        Right(
            _ROLE,
            _of(
                "iam",
                *("AttachRolePolicy", "CreateRole", "DeleteRole", "DeleteRolePolicy"),
                *("DetachRolePolicy", "GetRole", "GetRolePolicy", "ListAttachedRolePolicies"),
                *("ListRolePolicies", "PutRolePolicy", "TagRole", "UntagRole"),
                *("UpdateAssumeRolePolicy", "UpdateRole", "UpdateRoleDescription"),
            ),
        ),
    ),
    "AWS::KMS::Alias": (
        Right(_regional("kms", "alias/{stack}-{name}"), _of("kms", "CreateAlias", "DeleteAlias")),
        Right(_KEY, _of("kms", "CreateAlias", "DeleteAlias", "UpdateAlias")),
    ),
    "AWS::KMS::Key": (
        Right(ANY, _of("kms", "CreateKey")),
        Right(
            _KEY,
            _of(
                "kms",
                *("DescribeKey", "DisableKey", "DisableKeyRotation", "EnableKey"),
                *("EnableKeyRotation", "GetKeyPolicy", "GetKeyRotationStatus"),
                *("ListResourceTags", "PutKeyPolicy", "ScheduleKeyDeletion", "TagResource"),
                *("UntagResource", "UpdateKeyDescription"),
            ),
        ),
    ),
    "AWS::Lambda::Alias": (
        Right(
            _FUNCTION,
            _of(
                "lambda",
                *("CreateAlias", "DeleteAlias", "GetAlias", "GetProvisionedConcurrencyConfig"),
                "UpdateAlias",
            ),
        ),
    ),
    "AWS::Lambda::EventInvokeConfig": (
        Right(
            _FUNCTION,
            _of(
                "lambda",
                *("DeleteFunctionEventInvokeConfig", "GetFunctionEventInvokeConfig"),
                *("PutFunctionEventInvokeConfig", "UpdateFunctionEventInvokeConfig"),
            ),
        ),
    ),
    "AWS::Lambda::EventSourceMapping": (
        Right(ANY, _of("lambda", "CreateEventSourceMapping")),
        Right(
            _MAPPING,
            _of(
                "lambda",
                *("DeleteEventSourceMapping", "GetEventSourceMapping", "TagResource"),
                *("UntagResource", "UpdateEventSourceMapping"),
            ),
        ),
    ),
    "AWS::Lambda::Function": (
        Right(
            _FUNCTION,
            _of(
                "lambda",
                *("CreateFunction", "DeleteFunction", "DeleteFunctionConcurrency", "GetFunction"),
                *("GetFunctionCodeSigningConfig", "GetFunctionConfiguration"),
                *("GetFunctionRecursionConfig", "GetRuntimeManagementConfig", "ListTags"),
                *("PublishVersion", "PutFunctionConcurrency", "PutFunctionRecursionConfig"),
                *("PutRuntimeManagementConfig", "TagResource", "UntagResource"),
                *("UpdateFunctionCode", "UpdateFunctionConfiguration"),
            ),
        ),
        Right(f"{_LAYER}:{{name}}", _of("lambda", "GetLayerVersion")),
        Right(f"{_SAM_BUCKET}/{{name}}", _of("s3", "GetObject", "GetObjectVersion")),
        Right(_ROLE, _of("iam", "PassRole"), passed_to="lambda.amazonaws.com"),
    ),
    "AWS::Lambda::LayerVersion": (
        Right(_LAYER, _of("lambda", "PublishLayerVersion")),
        Right(f"{_LAYER}:{{name}}", _of("lambda", "DeleteLayerVersion", "GetLayerVersion")),
        Right(f"{_SAM_BUCKET}/{{name}}", _of("s3", "GetObject", "GetObjectVersion")),
    ),
    "AWS::Lambda::Permission": (
        Right(_FUNCTION, _of("lambda", "AddPermission", "GetPolicy", "RemovePermission")),
    ),
    "AWS::Lambda::Version": (
        Right(
            _FUNCTION,
            _of(
                "lambda",
                *("DeleteFunction", "GetFunctionConfiguration"),
                *("GetProvisionedConcurrencyConfig", "GetRuntimeManagementConfig"),
                *("ListVersionsByFunction", "PublishVersion"),
            ),
        ),
    ),
    "AWS::Logs::LogGroup": (
        Right(
            _LOGS,
            _of(
                "logs",
                *("CreateLogGroup", "DeleteLogGroup", "DeleteRetentionPolicy"),
                *("GetDataProtectionPolicy", "ListTagsForResource", "PutRetentionPolicy"),
                *("TagResource", "UntagResource", "AssociateKmsKey", "DisassociateKmsKey"),
            ),
        ),
        Right(
            ANY,
            _of("logs", "DescribeIndexPolicies", "DescribeLogGroups", "DescribeResourcePolicies"),
        ),
    ),
    "AWS::Logs::MetricFilter": (
        Right(_LOGS, _of("logs", "DeleteMetricFilter", "DescribeMetricFilters", "PutMetricFilter")),
    ),
    "AWS::S3::Bucket": (
        Right(
            _PAYLOADS,
            _of(
                "s3",
                *("CreateBucket", "DeleteBucket", "GetBucketOwnershipControls"),
                *("GetBucketPublicAccessBlock", "GetBucketTagging", "GetBucketVersioning"),
                *("GetEncryptionConfiguration", "GetLifecycleConfiguration", "ListBucket"),
                *("PutBucketOwnershipControls", "PutBucketPublicAccessBlock", "PutBucketTagging"),
                *("PutBucketVersioning", "PutEncryptionConfiguration"),
                "PutLifecycleConfiguration",
            ),
        ),
    ),
    "AWS::S3::BucketPolicy": (
        Right(_PAYLOADS, _of("s3", "DeleteBucketPolicy", "GetBucketPolicy", "PutBucketPolicy")),
    ),
    "AWS::SNS::Subscription": (
        Right(
            _TOPIC,
            _of("sns", "GetSubscriptionAttributes", "SetSubscriptionAttributes", "Subscribe"),
        ),
        Right(_TOPIC, _of("sns", "Unsubscribe")),
    ),
    "AWS::SNS::Topic": (
        Right(
            _TOPIC,
            _of(
                "sns",
                *("CreateTopic", "DeleteTopic", "GetDataProtectionPolicy", "GetTopicAttributes"),
                *("ListSubscriptionsByTopic", "ListTagsForResource", "SetTopicAttributes"),
                *("TagResource", "UntagResource"),
            ),
        ),
    ),
    "AWS::SNS::TopicPolicy": (Right(_TOPIC, _of("sns", "SetTopicAttributes")),),
    "AWS::SQS::Queue": tuple(
        Right(
            queue,
            _of(
                "sqs",
                *("CreateQueue", "DeleteQueue", "GetQueueAttributes", "GetQueueUrl"),
                *("ListQueueTags", "SetQueueAttributes", "TagQueue", "UntagQueue"),
            ),
        )
        for queue in _QUEUES
    ),
    "AWS::SQS::QueuePolicy": tuple(
        Right(queue, _of("sqs", "SetQueueAttributes")) for queue in _QUEUES
    ),
    "AWS::Scheduler::Schedule": (
        Right(
            _regional("scheduler", "schedule/default/{stack}-{name}"),
            _of("scheduler", "CreateSchedule", "DeleteSchedule", "GetSchedule", "UpdateSchedule"),
        ),
        Right(_ROLE, _of("iam", "PassRole"), passed_to="scheduler.amazonaws.com"),
    ),
}
"""What CloudFormation does for the caller, by the type of the resource."""


def rights_of(types: Iterable[str]) -> list[Right]:
    """Return the rights for resources of these types, one for each resource; unknown types have
    none.
    """
    return merged(right for kind in sorted(set(types)) for right in RIGHTS.get(kind, ()))


def merged(rights: Iterable[Right]) -> list[Right]:
    """Return the rights with all actions on a resource in one."""
    found: dict[tuple[str, str], set[str]] = {}
    for right in rights:
        found.setdefault((right.resource, right.passed_to), set()).update(right.actions)
    return [
        Right(resource, tuple(sorted(actions)), passed_to)
        for (resource, passed_to), actions in found.items()
    ]

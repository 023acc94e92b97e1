import json

import boto3
from moto import mock_aws

from roundsman_console.aws.resources import stack_resources

QUEUE = {"Type": "AWS::SQS::Queue"}
ENGINE = {"Resources": {"SchedulerQueue": QUEUE}}
AGENT = {"Resources": {"RequestQueue": QUEUE, "ReplyQueue": QUEUE}}
BUCKET = "templates"


@mock_aws
def test_the_resources_of_nested_stacks_are_named_as_the_flattened_template_names_them() -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket=BUCKET)
    blocks = {}
    for block, template in (("Engine", ENGINE), ("Payment", AGENT)):
        s3.put_object(Bucket=BUCKET, Key=block, Body=json.dumps(template).encode())
        url = f"https://{BUCKET}.s3.amazonaws.com/{block}"
        blocks[block] = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
    client = boto3.client("cloudformation", region_name="us-east-1")
    root = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}, **blocks}}
    client.create_stack(StackName="shop", TemplateBody=json.dumps(root))

    found = list(stack_resources(client, "shop"))

    assert {(each.name, each.kind) for each in found} == {
        ("Bucket", "AWS::S3::Bucket"),
        ("SchedulerQueue", "AWS::SQS::Queue"),
        ("PaymentRequestQueue", "AWS::SQS::Queue"),
        ("PaymentReplyQueue", "AWS::SQS::Queue"),
    }
    assert all(each.physical_id for each in found)

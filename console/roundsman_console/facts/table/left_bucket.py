"""The PayloadBucket that a deleted stack leaves, and the commands that empty and delete it."""

_OBJECTS = "{Objects: [Versions, DeleteMarkers][].{Key: Key, VersionId: VersionId}, Quiet: `true`}"
"""What S3 deletes, of one page of its versions. `aws s3 rm` would leave the versions."""


def commands_for(bucket: str) -> tuple[str, str]:
    """Return the command that removes up to 1,000 versions of payloads, and the one that deletes
    the bucket, which S3 refuses until it is empty."""
    versions = (
        f"aws s3api list-object-versions --bucket {bucket} --no-paginate --query '{_OBJECTS}' "
        "--output json"
    )
    return (
        f'aws s3api delete-objects --bucket {bucket} --delete "$({versions})"',
        f"aws s3api delete-bucket --bucket {bucket}",
    )


def left_words(bucket: str) -> list[str]:
    """Return that the bucket stays, and how it goes, as lines."""
    return [
        f"The bucket {bucket} stays with the payloads of all orders, and costs money. When nobody "
        "needs them, repeat the first command until the second one is not refused:",
        *commands_for(bucket),
    ]

"""Many instances of the real scheduler at once, on DynamoDB's own engine."""

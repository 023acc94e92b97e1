"""The stores in DynamoDB."""

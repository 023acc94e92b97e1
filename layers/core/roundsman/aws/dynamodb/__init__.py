"""The stores over DynamoDB."""

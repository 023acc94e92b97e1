"""Messages over SQS and SNS: batches read, and messages sent."""

"""The message formats: messages between the parts and alerts to people, valid for SQS and SNS."""

"""The messages between the parts and to people, as text, within the limits of SQS and SNS."""

"""Reads batches of SQS messages, and sends messages over SQS and SNS."""

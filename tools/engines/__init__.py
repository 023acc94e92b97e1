"""Installs what tests run against: DynamoDB Local, Chromium, and Java and Node if missing."""

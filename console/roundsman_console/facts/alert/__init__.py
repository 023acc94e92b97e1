"""Alerts: those whose cause still exists, and the messages of the AlertTopic."""

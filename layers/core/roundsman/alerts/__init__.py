"""Alerts: failure groups, what operators are told of them, and when."""

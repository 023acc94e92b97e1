"""Presenting tasks, agents and alerts to people and scripts: pure functions of the data read."""

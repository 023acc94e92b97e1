"""Changing a deployed stack: commands to tasks, alerts about holds, and waking parked tasks."""

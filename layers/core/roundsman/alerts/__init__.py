"""Failure groups, and the alerts about them that operators receive."""

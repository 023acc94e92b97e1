"""Failure groups at the command line: what failed alike, how often, and what to do about it."""

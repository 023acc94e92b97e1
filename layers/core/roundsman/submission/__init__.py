"""Submission receives order events, and stores each order together with its task."""

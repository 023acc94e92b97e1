"""Rejected messages and dead letters: listed, read, corrected, sent again."""

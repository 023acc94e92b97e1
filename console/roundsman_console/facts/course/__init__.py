"""The course of things: orders a minute over the last hours, and what was done meanwhile."""

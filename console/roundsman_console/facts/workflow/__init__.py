"""Workflows: how their steps do, and since when worse."""

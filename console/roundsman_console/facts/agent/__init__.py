"""Agents: their names, whether they take work, and how far behind they are."""

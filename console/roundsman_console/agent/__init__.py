"""Agents: whether they take work, and the holds of operators."""

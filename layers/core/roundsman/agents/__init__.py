"""Agents: run the author's function for one step, once per attempt, and reply."""

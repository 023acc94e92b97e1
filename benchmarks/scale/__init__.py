"""Calculates the limits of a deployment, and simulates overload."""

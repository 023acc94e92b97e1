"""Calculates the limits of a deployment, from 1 to 10,000 orders per second."""

"""Holds placed and released, and those who waited woken."""

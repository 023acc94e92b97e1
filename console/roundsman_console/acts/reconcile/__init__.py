"""Bringing on the orders of tables that were restored to an earlier instant."""

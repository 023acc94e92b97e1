"""Bulk runs: one command for many orders, with a plan, a canary, a rate and stored progress."""

"""Bulk runs: one verb for many orders, with a dry run, a canary, a rate and stored progress."""

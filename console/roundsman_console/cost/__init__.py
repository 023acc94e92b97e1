"""What orders cost: from counts that were measured, and AWS's list prices.

`prices.toml` holds the prices and what is assumed, `figures.json` what was counted
(`python -m benchmarks record` writes it); `model` makes a bill of them, `rivals` the same order's
elsewhere, `spent` a live stack's from its metrics, `command` is the CLI.
"""

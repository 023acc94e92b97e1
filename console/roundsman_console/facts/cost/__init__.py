"""`roundsman cost`: computes the cost of orders from measured counts and AWS list prices.

`prices.toml` contains the prices and the assumptions. `figures.json` contains the counts, and is
written by `python -m benchmarks record`. `model` computes a monthly bill from both, and the cost of
the same orders on other services, and `usage` the cost of a deployed stack from its metrics,
which `live` reads.
"""

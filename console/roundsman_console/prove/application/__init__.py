"""The application of a proof: eight workflows, and agents whose services are a ledger in a table.

It runs on Lambda as the package `proof`, a copy of this folder. So its modules import each other by
their place in it, and nothing else of the console.
"""

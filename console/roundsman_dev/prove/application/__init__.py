"""The application of a proof: eight workflows, and agents whose services are a ledger in a table.

It runs on Lambda as the package `proof`, a copy of this folder (`prove.project`). So its modules
import nothing else of the console.
"""

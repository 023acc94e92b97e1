"""The invariants of every task at every moment, and the code that checks them."""

"""The four tables of a stack, and their copies."""

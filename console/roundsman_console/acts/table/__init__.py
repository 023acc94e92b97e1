"""The tables of a stack restored to an instant, or deleted with the stack."""

"""What is true of the recurring orders of a stack."""

"""What a deployment would change in a stack, before it does."""

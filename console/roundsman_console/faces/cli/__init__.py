"""What the commands share: options, the stack, the terminal, and errors as sentences."""

"""The command line of Roundsman; it runs on an operator's machine, never in Lambda."""

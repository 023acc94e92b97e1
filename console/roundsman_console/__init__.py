"""The command line of Roundsman; it runs on an operator's machine and never in Lambda."""

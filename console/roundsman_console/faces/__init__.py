"""What a person sees: the command line and the console in the browser."""

"""The commands of the command line as forms: one module for what each kind is about."""

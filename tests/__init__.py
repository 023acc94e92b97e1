"""The tests; CONTRIBUTING.md says which kinds there are."""

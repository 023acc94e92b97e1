"""A whole Roundsman in memory, on a clock that a test moves."""

"""The pages of the console: each module reads what one page shows."""

"""The forms of the console, those of each noun in one module."""

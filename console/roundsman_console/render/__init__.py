"""Results of the inspector as text and tables for a terminal."""

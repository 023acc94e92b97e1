"""Dead letters and rejected messages corrected, sent again or removed."""

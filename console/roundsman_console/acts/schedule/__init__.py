"""What a person may ask of recurring orders."""

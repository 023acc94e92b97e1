"""What a person may ask about workflows."""

"""The verbs: each declared once, and how it is carried out."""

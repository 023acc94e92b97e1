"""How a verb is declared once, and the list of all verbs."""

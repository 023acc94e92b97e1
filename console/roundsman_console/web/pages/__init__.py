"""What each page of the console shows: a module for each, with a template of its name.

A page reads what it shows from the inspector and returns the values of its template.
"""

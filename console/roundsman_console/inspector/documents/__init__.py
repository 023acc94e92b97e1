"""The types of the JSON documents for scripts, by subject; they are plain dictionaries at run time.

The names of the fields and the values are those of the JSON. `tools.schemas` generates the
JSON schemas of the site from these types: the docstring of a class describes its document,
and the docstring below a field describes the field.
"""

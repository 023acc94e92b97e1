"""`roundsman prove`: proves the promises in the user's own account, with a stack of its own.

`application` is what runs there. `document` is all that was seen, and `stored_lines` the same as
JSON lines; `checks` judges it, by the checks of an audit and those that need the ledger of the
services, and `report` says what was found. All of these are pure.
"""

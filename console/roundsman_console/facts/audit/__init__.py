"""`roundsman audit`: judges by what a stack has stored whether its orders followed the promises.

`promises` names them. `stored_order` is what is stored of one order, without its contents, and
`stored_document` is the same as JSON. `record_checks`, `history_checks` and `effect_checks` are
pure functions of it, one for each promise, which the test kit uses too; `checks` lists them and
judges an order by all. `reading` reads the orders of a stack, and `report` counts what was found.
"""

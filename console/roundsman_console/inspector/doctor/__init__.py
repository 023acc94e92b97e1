"""`roundsman doctor`: checks that tasks, index, queues, leases, plans and alarms are consistent.

`gather*` and `deep` read the facts from AWS; `*_checks` are pure functions that find what is wrong
with them; `catalog` says for each kind of finding what it means and how to repair it; `repair`
makes the safe repairs; `report` prints the result.
"""

"""`roundsman doctor`: whether tasks, index, queues, leases, plans and alarms agree.

`gather_*` ask AWS for the facts, a few at a time; `*_checks` are pure and find what is wrong with
them; `kinds` says of each kind of finding what it means and what mends it; `repair` does what is
safe to do; `report` prints it.
"""

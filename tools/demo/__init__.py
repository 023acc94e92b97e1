"""The demo: sends orders through a stack on a local AWS while remote services fail on purpose.

`scenario` defines the orders, the faults and the expected ends. `observe` reads the facts of a run,
and `facts` contains their types. `progress` derives what is still open, and `watch` shows it during
the run. `summary` compares the facts with the scenario, and `report` prints the result. `run` runs
the demo.
"""

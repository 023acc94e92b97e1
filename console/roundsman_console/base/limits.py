"""The limits of what an operator may say in a command. They import little, for the command line."""

from roundsman.wire import commands

LONGEST_EXTENSION = commands.LONGEST_EXTENSION
"""The maximum number of seconds by which one command `extend` moves a time."""

WAIT = 15.0
"""Seconds to wait for the outcome of a command, if nobody says how long."""

LONGEST_REASON = 500
"""Characters; the reason is stored in the task's record and shown in lists."""

LONGEST_NOTE = 2_000
"""Characters of a note on a failure group."""

LONGEST_NAME = 100
"""Characters."""

SHORTEST_HOLD = 10
"""Seconds; a shorter hold could end before all schedulers have read it."""

LONGEST_HOLD = 7 * 24 * 3600
"""Seconds."""

LONGEST_LIFT = 24 * 3600
"""Seconds for which the rate of a tenant is lifted; its row is kept for longer (`ROW_KEPT`)."""

STOP_AT = "20%"
"""If a larger share of orders fails, a bulk run stops, and a release is taken back."""

SHORTEST_WATCH, LONGEST_WATCH = 5, 3600
"""Seconds for which a release is watched."""

LOWEST_RATE, HIGHEST_RATE = 0.5, 100.0
"""Orders per second that `reconcile` sends."""

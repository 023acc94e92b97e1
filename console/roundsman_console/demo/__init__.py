"""The demo: a local AWS, the stack, remote services that fail on purpose, and orders sent through.

`scenario` says what is sent and how it must end, `facts` what can be known of a run, `summary`
compares the two. `reading` and `alerts` find the facts out, `watch` shows them as they come, `run`
puts it together, `command` is the CLI.
"""

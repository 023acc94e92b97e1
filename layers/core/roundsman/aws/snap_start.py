"""What must differ between instances that Lambda restores from one snapshot (SnapStart).

With SnapStart, Lambda runs a function's imports once, when its version is published, and a new
instance begins with a copy of that memory. A function of Roundsman makes at its first invocation,
and so after the copy, all that is an instance's own: its settings, its clients with their
credentials and connections, its id, and what it knows of holds, queues and circuits. The one
exception is the generator of the module `random`, which Python seeds when it imports the module:
the waits between tries, ours and those of botocore, would be the same in all instances.
"""

import random
from importlib import import_module
from importlib.util import find_spec

RUNTIME_HOOKS = "snapshot_restore_py"
"""The module of Lambda's own runtimes that runs code after a restore. No other Python has it."""


def seed_after_restore() -> None:
    """Have Lambda seed `random` anew in each instance that it restores; elsewhere do nothing."""
    if find_spec(RUNTIME_HOOKS) is not None:
        import_module(RUNTIME_HOOKS).register_after_restore(random.seed)

"""The guards that `tools.mutation_check` removes, one at a time.

The mutants of the engine are generated: see `tools.mutants.engine`. Its guards are here only for
the modules that are not checked there yet.
"""

from tools.mutants.added import ADDED
from tools.mutants.agents import AGENTS
from tools.mutants.audit import AUDIT
from tools.mutants.behind import BEHIND
from tools.mutants.beside import BESIDE
from tools.mutants.calls import CALLS
from tools.mutants.doctor import DOCTOR
from tools.mutants.effects import EFFECTS
from tools.mutants.events import EVENTS
from tools.mutants.groups import GROUPS
from tools.mutants.letters import LETTERS
from tools.mutants.looking import LOOKING
from tools.mutants.masked import MASKED
from tools.mutants.model import MODEL
from tools.mutants.mutant import Mutant
from tools.mutants.prove import PROVE
from tools.mutants.raised import RAISED
from tools.mutants.refused import REFUSED
from tools.mutants.sending import SENDING
from tools.mutants.steps import STEPS
from tools.mutants.stores import STORES
from tools.mutants.waiting import WAITING
from tools.mutants.waking import WAKING

MUTANTS: tuple[Mutant, ...] = (
    *MODEL,
    *STORES,
    *SENDING,
    *CALLS,
    *LETTERS,
    *LOOKING,
    *GROUPS,
    *AUDIT,
    *PROVE,
    *DOCTOR,
    *AGENTS,
    *REFUSED,
    *EFFECTS,
    *STEPS,
    *BEHIND,
    *ADDED,
    *WAKING,
    *RAISED,
    *MASKED,
    *WAITING,
    *BESIDE,
    *EVENTS,
)

"""The guards that `tools.mutation_check` takes out, one at a time."""

from tools.mutants.agents import AGENTS
from tools.mutants.calls import CALLS
from tools.mutants.doctor import DOCTOR
from tools.mutants.ends import ENDS
from tools.mutants.groups import GROUPS
from tools.mutants.knowledge import KNOWLEDGE
from tools.mutants.letters import LETTERS
from tools.mutants.looking import LOOKING
from tools.mutants.machine import MACHINE
from tools.mutants.mutant import Mutant
from tools.mutants.refused import REFUSED
from tools.mutants.sending import SENDING
from tools.mutants.stores import STORES

MUTANTS: tuple[Mutant, ...] = (
    *MACHINE,
    *ENDS,
    *STORES,
    *SENDING,
    *CALLS,
    *LETTERS,
    *LOOKING,
    *GROUPS,
    *DOCTOR,
    *KNOWLEDGE,
    *AGENTS,
    *REFUSED,
)

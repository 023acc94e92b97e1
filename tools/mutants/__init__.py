"""Mutants: changes of the source that a test must notice.

Those of the engine are generated (`tools.mutants.engine`); those of other packages are pinned
(`tools.mutants.guards`, which `tools.mutation_check` runs).
"""

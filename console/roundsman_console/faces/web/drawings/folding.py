"""Which steps of a large workflow are drawn as one? Pure.

Steps of one kind that follow each other, or that stand side by side between the same steps, are one
group. A group comes after all that its steps come after, so no line leads back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FEW = 12
"""Up to so many steps, each is drawn."""
MANY = 24
"""If more than this remain, the kinds of `Kinds.together` are folded."""
ALIKE_IN_TROUBLE = 4
"""So many steps of a kind that needs a look are one group, if they stand side by side."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind of each step: steps of another kind are never in one group."""

    of: Mapping[str, str]
    quiet: frozenset[str]
    """The kinds that need no look."""
    together: tuple[frozenset[str], ...] = ()
    """Quiet kinds of which all steps become one group if many groups remain: steps that are done
    are before all others, and steps that have not begun after them."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The groups by their first step; a step that is drawn alone is a group of one."""

    members: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]
    """The groups directly before each group."""


def folded(after: Mapping[str, Sequence[str]], kinds: Kinds, few: int = FEW) -> Folded:
    """Return the groups of a workflow. `after` has the direct predecessors of each step.

    A workflow of at most `few` steps is not folded.
    """
    groups = _Groups(after, kinds)
    if len(after) > few:
        while groups.fold_rows() or groups.fold_fans():
            pass
        if len(groups.members) > MANY:
            for wanted in kinds.together:
                groups.fold_all(wanted)
    return groups.folded()


class _Groups:
    """The groups while they are made."""

    def __init__(self, after: Mapping[str, Sequence[str]], kinds: Kinds) -> None:
        self._kinds = kinds
        self._order = {name: place for place, name in enumerate(after)}
        self.members = {name: [name] for name in after}
        self._before = {name: {*befores} for name, befores in after.items()}
        self._later = {name: set[str]() for name in after}
        for name, befores in after.items():
            for other in befores:
                self._later[other].add(name)

    def fold_rows(self) -> bool:
        """Fold each step with the only one after it, if both are of one quiet kind."""
        changed = False
        for name in [*self.members]:
            if name not in self.members or not self._is_quiet(name):
                continue
            while len(self._later[name]) == 1:
                (other,) = self._later[name]
                if len(self._before[other]) != 1 or self._kinds.of[name] != self._kinds.of[other]:
                    break
                self._join([name, other])
                changed = True
        return changed

    def fold_fans(self) -> bool:
        """Fold the steps of one kind between the same steps."""
        fans: dict[tuple[frozenset[str], frozenset[str], str], list[str]] = {}
        for name in self.members:
            between = (frozenset(self._before[name]), frozenset(self._later[name]))
            fans.setdefault((*between, self._kinds.of[name]), []).append(name)
        changed = False
        for names in fans.values():
            if len(names) >= (2 if self._is_quiet(names[0]) else ALIKE_IN_TROUBLE):
                self._join(names)
                changed = True
        return changed

    def fold_all(self, wanted: frozenset[str]) -> None:
        """Fold all groups of these kinds into one, unless a line would lead back."""
        names = [name for name in self.members if self._kinds.of[name] in wanted]
        outside = {other for name in names for other in self._later[name]} - {*names}
        if len(names) > 1 and not self._leads_to(outside, {*names}):
            self._join(names)

    def folded(self) -> Folded:
        """Return what was made, in the order of the workflow."""
        first = {
            name: min(members, key=self._order.__getitem__)
            for name, members in self.members.items()
        }
        names = sorted(self.members, key=lambda one: self._order[first[one]])
        return Folded(
            {
                first[name]: tuple(sorted(self.members[name], key=self._order.__getitem__))
                for name in names
            },
            {
                first[name]: tuple(
                    sorted(
                        (first[other] for other in self._before[name]), key=self._order.__getitem__
                    )
                )
                for name in names
            },
        )

    def _is_quiet(self, name: str) -> bool:
        return self._kinds.of[name] in self._kinds.quiet

    def _leads_to(self, names: Iterable[str], goal: set[str]) -> bool:
        seen, left = set[str](), [*names]
        while left:
            name = left.pop()
            if name in goal:
                return True
            if name not in seen:
                seen.add(name)
                left += self._later[name]
        return False

    def _join(self, names: Sequence[str]) -> None:
        """Make one group of these, under the name of the first."""
        into, rest = names[0], {*names[1:]}
        both = {into, *rest}
        before = {one for name in names for one in self._before[name]} - both
        later = {one for name in names for one in self._later[name]} - both
        self.members[into] = [one for name in names for one in self.members[name]]
        for name in rest:
            del self.members[name], self._before[name], self._later[name]
        for one in before:
            self._later[one] = (self._later[one] - rest) | {into}
        for one in later:
            self._before[one] = (self._before[one] - rest) | {into}
        self._before[into], self._later[into] = before, later

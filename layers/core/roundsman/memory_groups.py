"""The failure groups in memory: GroupStore with the promises of the one over DynamoDB."""

from threading import RLock

from roundsman.groups import Group, room_for


class MemoryGroups:
    """GroupStore. Threads may share it: each call is atomic."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._groups: dict[str, Group] = {}

    def groups(self) -> list[Group]:
        """All of them, the oldest first."""
        with self._lock:
            return sorted(self._groups.values(), key=lambda group: (group.opened_at, group.id))

    def open(self, group: Group) -> Group | None:
        """Store a group that is not there; the group as it stands; None: there is no room."""
        with self._lock:
            found = self._groups.get(group.id)
            if found is not None:
                return found
            room = room_for(group)
            if room is not None and len(self._groups) >= room:
                return None
            self._groups[group.id] = group
            return group

    def change(self, group: Group, *, seen: int) -> bool:
        """Store it on the version that was seen; False where another write came first."""
        with self._lock:
            found = self._groups.get(group.id)
            if found is None or found.version != seen:
                return False
            self._groups[group.id] = group
            return True

    def remove(self, group: Group) -> bool:
        """Forget it, if it is still at that version."""
        with self._lock:
            found = self._groups.get(group.id)
            if found is None or found.version != group.version:
                return False
            del self._groups[group.id]
            return True

"""A scheduler that a test hands one message at a time."""

from roundsman.scheduler.arrived import Arrived
from roundsman.scheduler.scheduler import Handled, Scheduler
from roundsman.wire.commands import Command
from roundsman.wire.messages import Reply


class OneByOne(Scheduler):
    """The scheduler, with what became of one message as a result or as an exception."""

    def command(self, command: Command, message_id: str, sent_at: int | None = None) -> Handled:
        return self._one(Arrived(command, message_id, sent_at=sent_at))

    def reply(
        self,
        reply: Reply,
        message_id: str,
        sender: str | None = None,
        sent_at: int | None = None,
    ) -> Handled:
        return self._one(Arrived(reply, message_id, sender, sent_at))

    def _one(self, arrived: Arrived) -> Handled:
        [result] = self.handle([arrived])
        if isinstance(result, Exception):
            raise result
        return result

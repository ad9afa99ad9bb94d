"""The process of an instance: does what its machine says.

One thread decides, and everything that waits does so in a thread of its own, in the kernel: for a
lock, for news of it, for the death of a participant, for the journaler's end.  They
leave word in the inbox.  So between a live's death and its backup's first confirm nobody sleeps.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from shmbroker.ipc.broker.journaler import keep_memory
from shmbroker.ipc.instance import ordering, signals
from shmbroker.ipc.instance.leaving import SOMETHING_STAYED
from shmbroker.ipc.instance.live import Live
from shmbroker.ipc.instance.lock import record
from shmbroker.ipc.instance.loop import LAST_STATES
from shmbroker.ipc.instance.machine import Action, State

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Instance(Live):
    """Made of its configuration; run() is all that there is to do with it."""

    def run(self) -> int:
        """Until it is stopped, or cannot go on: the exit code.

        Threads of ours may still sleep in the kernel: leave by os._exit.
        """
        keep_memory()
        signals.heard(
            {
                **dict.fromkeys(SIGNALS, self._signalled),
                signal.SIGHUP: self._asked_to_reload,
                ordering.SIGNAL: self._asked_to,
            }
        )
        self._show()  # from then on there are orders
        self._in_background(self._listen)
        self.inbox.put(lambda: self._do(self.machine.start()))
        while self.machine.state not in LAST_STATES:
            self._guarded(self.inbox.get())
        if self.machine.state != State.STOPPED:
            return 1
        return 0 if self.left is None or self.left.is_whole else SOMETHING_STAYED

    def _act(self, action: Action) -> None:
        ACTIONS[action](self)

    def _end(self) -> None:
        if self.machine.state == State.STOPPED and self.left is not None:
            self.why = self.left.why or self.why
        self._show()
        if self.network is not None:  # of one that was passive; a live's has ended before
            self.network.end(at_once=True)
        self._detach()
        if self.journaler is not None and self.broker is None:  # it was ready, and is not needed
            self.journaler.close()
            self.journaler = None
        if self.lock.is_lease and (self.journaler is None or self.journaler.has_ended):
            self.lock.close()


ACTIONS: Final[dict[Action, Callable[[Instance], None]]] = {
    Action.TRY_LIVE: Instance._try_live,
    Action.WAIT_ANNOUNCED: Instance._wait_announced,
    Action.WAIT_LIVE: Instance._wait_live,
    Action.RELEASE_ANNOUNCED: lambda instance: instance.lock.release_announced(),
    Action.RELEASE_LIVE: lambda instance: instance.lock.release_live(),
    Action.PREPARE: Instance._prepare,
    Action.ASK_FAILBACK: Instance._ask_failback,
    Action.ASK_COMMAND: Instance._ask_command,
    Action.GO_LIVE: Instance._go_live,
    Action.HAND_OVER: Instance._hand_over,
    Action.SAY_STOPPED: lambda instance: instance._say(record.STOPPED),
    Action.SAY_HANDED_OVER: lambda instance: instance._say(record.HANDED_OVER),
    Action.END: Instance._end,
}

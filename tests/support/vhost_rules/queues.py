"""Rules for queues: declaring, deleting, purging, pausing; participants that come and go."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import shmbroker
from tests.support.model import QueueModel
from tests.support.vhost_rules.world import (
    World,
    anything,
    queue_names,
    who,
)


class QueueRules(World):
    """Queues, and who takes part."""

    @rule(who=who, name=queue_names, slots=st.sampled_from([4, 4, 8]))
    def declare_queue(self, who: int, name: str, slots: int) -> None:
        known = self.model.queues.get(name)
        if known is not None and known.slots != slots:
            with pytest.raises(shmbroker.DeclaredDifferently, match=f"'{name}'"):
                self.brokers[who].declare_queue(name, slots=slots)
            return
        queue = self.brokers[who].declare_queue(name, slots=slots)
        assert (queue.name, queue.slots) == (name, slots)
        if known is None:
            self.model.queues[name] = QueueModel(name, slots)

    @rule(who=who, name=queue_names, force=st.sampled_from([False, False, True]))
    def delete_queue(self, who: int, name: str, force: bool) -> None:
        known = self.model.queues.get(name)
        broker = self.brokers[who]
        if known is None:
            with pytest.raises(shmbroker.NotFound, match=f"'{name}'"):
                broker.delete_queue(name, force=force)
            return
        if known.users - {who} and not force:
            with pytest.raises(shmbroker.InUse, match="force"):
                broker.delete_queue(name)
            return
        handles = [each.queue(name) for each in self.brokers]
        broker.delete_queue(name, force=force)
        self.model.forget(known)
        for queue in handles:
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.publish(b"", timeout=0)
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.get(timeout=1)
            with pytest.raises(shmbroker.NotFound, match="deleted"):
                queue.statistics()
        self.drop_uses(lambda use: use.queue is known, shmbroker.NotFound)

    @precondition(World.has_queues)
    @rule(who=who, number=anything)
    def purge(self, who: int, number: int) -> None:
        model = self.some_queue(number)
        ready = model.ready()
        assert self.use(who, model).purge() == len(ready)
        for message in ready:
            message.done()
        model.dropped += len(ready)

    @precondition(World.has_queues)
    @rule(who=who, number=anything, paused=st.sampled_from([False, False, True]))
    def pause(self, who: int, number: int, paused: bool) -> None:
        model = self.some_queue(number)
        queue = self.use(who, model)
        if paused:
            queue.pause()
        else:
            queue.resume()
        model.paused = paused
        assert queue.is_paused == paused

    @rule(who=who)
    def reconnect(self, who: int) -> None:
        former = self.brokers[who]
        queues = [former.queue(name) for name in self.model.queues]
        former.close()
        former.close()
        for queue in queues:
            with pytest.raises(shmbroker.ConnectionClosed):
                queue.publish(b"")
            with pytest.raises(shmbroker.ConnectionClosed):
                queue.get()
        with pytest.raises(shmbroker.ConnectionClosed):
            former.queues()
        for model in self.model.queues.values():
            model.leave(who)
        self.drop_uses(lambda use: use.who == who, shmbroker.ConnectionClosed)
        self.brokers[who] = self.connect(who)

    @rule(who=who)
    def repair(self, who: int) -> None:
        assert self.brokers[who].repair() == 0

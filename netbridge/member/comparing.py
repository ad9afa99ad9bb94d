"""Which of the members on the in-sync list goes first, by what each one has said of itself.

Where nobody can be asked a member claims the next epoch when all that it waits for are linked, none
of them follows or becomes live, and none has more than it has (claiming.py).
"""

from __future__ import annotations

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.core import Core
from shmbroker.netbridge.member.options import CONTINUE_ALONE
from shmbroker.netbridge.member.said import Hello
from shmbroker.netbridge.member.standing import Position


class Comparing(Core):
    # --- whom it waits for --------------------------------------------------------------------

    @property
    def dead(self) -> frozenset[str]:
        """Members of which a kernel has told that they are no more, to this one or to another that
        had met the same process: who has not met it may tell of an earlier one.

        All that wait for the same dead live must know, or one of them waits for a member that
        goes before it and may not begin.
        """
        if not self.was_in_sync or self.options.electorate is not None:
            return frozenset()
        told = {life for hello in self.peers.values() for life in hello.dead}
        over = {member for member, life in self.lives.items() if life in told}
        return frozenset(self.proven | (over - self.links))

    @property
    def missed(self) -> frozenset[str]:
        """On the list, beside this one, but for the live that is proven to be dead.

        Another one that is dead, too, may have been live in between, and have confirmed alone: its
        journal says so when it is back.
        """
        return self.others - (self.dead & {self.last.holder})

    @property
    def met(self) -> frozenset[str]:
        """Of these, who is here, and has a journal of this node still."""
        return self.missed & frozenset(
            member for member, hello in self.peers.items() if hello.node == self.node
        )

    @property
    def lost_theirs(self) -> frozenset[str]:
        """Of these, who is here, and whose journal is another one, or new."""
        return (self.missed & self.peers.keys()) - self.met

    @property
    def awaited(self) -> str:
        """Without whom it does not begin, for people: who is alone on the list needs only votes."""
        return ", ".join(sorted(self.missed)) or "its voters"

    @property
    def has_met_all(self) -> bool:
        """On the list, and nobody serves, or has more, or may get more, or becomes live."""
        if not self.is_listed or self.met != self.missed:
            return False
        for member in self.missed:
            hello = self.peers[member]
            # what is not newer has nothing that is not here; its rank matters if both claim
            is_newer = hello.is_listed and hello.last.age > self.last.age
            is_newer |= hello.epoch > self.epoch
            if is_newer or hello.serves or hello.is_following:
                return False
        return True

    def goes_before(self, member: str, last: Position) -> bool:
        mine = -self.options.rank(self.me), self.me
        return (last.age, (-self.options.rank(member), member)) > (self.last.age, mine)

    def is_behind(self, member: str) -> bool:
        """A member that is linked, and goes first: by what it has, then by its rank."""
        hello = self.peers.get(member)
        return hello is not None and self.goes_before(member, hello.last)

    def _is_meant(self, grant: Grant) -> bool:
        """For this boot of its host: who goes on without a replica may have confirmed what its disk
        has not yet."""
        return any(copy.allows(self.me, self.boot) for copy in grant.copies)

    @property
    def is_parked_for_nothing(self) -> bool:
        """Who parked the group is here, and waits as well: it, or another one, has not heard so."""
        hello = self.peers.get(self.last.holder)
        if not self.is_parked or hello is None or hello.epoch > self.epoch:
            return False
        lacks_it = hello.last.age < self.last.age
        waits = self.options.electorate is None and not (hello.is_parked or hello.serves)
        return lacks_it or waits

    # --- with whom it may be live -------------------------------------------------------------

    @property
    def partners(self) -> list[Hello]:
        """Of this node."""
        return [hello for hello in self.peers.values() if hello.node == self.node]

    @property
    def may_split(self) -> bool:
        """Not all on the list are here with their journals, and the configuration says what that
        means.

        Those that are here come first: one that follows has a live, one that becomes live is one.
        """
        is_alone = self.met != self.missed
        is_first = not any(hello.is_following for hello in self.partners)
        is_first &= not any(self.peers[each].serves for each in self.lost_theirs)  # another node
        return self.options.on_partition == CONTINUE_ALONE and is_alone and is_first

    @property
    def alone_grant(self) -> Grant:
        """It does not outlive this boot before it has begun, unless its copy does: what was granted
        to it is granted again, and by then it may lack what its disk had not."""
        is_bound = any(copy.member == self.me and copy.boot for copy in self.copies)
        return Grant(self.epoch + 1, self.me, (Copy(self.me, self.boot if is_bound else ""),))

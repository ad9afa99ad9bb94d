"""What a live has of its replicas: who follows it, who counts, and what is confirmed.

In: first the record, from which on confirms wait for the newcomer; then a majority of the voters is
told; then the newcomer.  Out: first a grant of the next epoch, then its first record, then confirms
without it.  A replica that leaves by its own will needs no grant: the record, the voters, confirms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import (
    Alert,
    Begin,
    Serve,
    Ship,
    StopShipping,
    Write,
)
from shmbroker.netbridge.member.core import NEVER, Purpose
from shmbroker.netbridge.member.follower import Follower
from shmbroker.netbridge.member.options import CONTINUE_ALONE, MemberOptions
from shmbroker.netbridge.member.passive import Passive
from shmbroker.netbridge.member.said import (
    InSync,
    Join,
    Joined,
    NotJoined,
)
from shmbroker.netbridge.member.standing import (
    SERVING,
    Copies,
    Past,
    Position,
    Record,
    State,
)
from shmbroker.netbridge.member.written import in_epoch
from shmbroker.netbridge.wire.words import Level

HistoryCheck = Callable[[Position], bool]
"""Whether the journal here has this frame, by epoch, holder, number and chain."""


class Replicating(Passive):
    def __init__(
        self,
        options: MemberOptions,
        past: Past,
        has_frame: HistoryCheck,
        *,
        boot: str,
        life: str,
        now: float,
    ) -> None:
        super().__init__(options, past, boot=boot, life=life, now=now)
        self.has_frame = has_frame
        self.followers: dict[str, Follower] = {}
        self.counted: frozenset[str] = frozenset()
        """Members that confirms wait for."""
        self.lists: list[tuple[int, tuple[Copy, ...]]] = []
        """Records of the in-sync list that are not safe yet, by number."""
        self.end = self.synced_to = past.last.number
        self.holds_until = 0.0
        self.ticked_at = self.steady_from = now
        self.hand_to = ""
        self.hands_until = NEVER
        self.parks = False
        """It is stopped with `--no-handover`."""
        self.is_drained = False
        self.is_held = False
        """Nothing but records is written any more."""
        self.final: Record | None = None
        """The last record, which every replica that counts must have before this member goes."""
        self.final_at = 0
        self.serves_already = False
        self.is_broken = False
        """Its disk takes nothing."""
        self.goes_on_at = NEVER
        """Without replicas that it has lost while it was isolated."""
        self.asked: dict[str, float] = {}
        """Backups for which there was no place, and when they asked last."""

    # --- what may be done now -----------------------------------------------------------------

    def may_write(self) -> bool:
        """Publishes are written.  Look before each frame."""
        return self.state in (State.LIVE, State.ALONE, State.SUSPENDED)

    @property
    def lacks_copies(self) -> bool:
        """`min-insync`: publishes to durable queues wait."""
        return len(self.counted) + 1 < self.options.min_insync

    def is_valid(self, now: float) -> bool:
        """Nobody can have been granted a higher epoch."""
        return self.options.electorate is None or not self.counted or self.lease.is_valid(now)

    def is_doubtful(self, now: float) -> bool:
        """Somebody else may deliver: a consumer gets what is durable with the flag only.

        With leases off, what a live delivers that does not know of its successor is not flagged.
        """
        return bool(self.options.lease) and not self.is_valid(now)

    def serves_until(self, now: float) -> float:
        """Consumers may take durable messages until then.

        While no voter can be reached, and all replicas that count follow, they are not to stand
        still.
        """
        if self.state not in (State.LIVE, State.ALONE) or self.is_withholding(now):
            return 0.0
        lease = self.options.lease
        if self.options.electorate is None or not self.counted or not lease:
            return NEVER
        if self.is_valid(now) or not self.counted <= self.followers.keys():
            return self.lease.valid_until
        # whoever follows is not live, also if no voter can be reached; who was paused may not know
        # yet that nobody follows any more
        is_steady = now >= self.steady_from and now < self.ticked_at + lease / 2
        return now + lease / 2 if is_steady else 0.0

    def is_withholding(self, now: float) -> bool:
        """Nothing is confirmed, and nothing durable delivered.

        `backup-timeout`: before its backups are in sync again; `network-check`: while isolated.
        """
        is_new = bool(self.options.backup_timeout) and not self.serves_already
        return is_new or now < self.holds_until or self.is_isolated

    def confirmed(self, now: float) -> int:
        """Records up to this frame are synced here, and whoever confirms wait for has them."""
        confirms = self.state in (State.LIVE, State.ALONE, State.HANDING_OVER)
        if not confirms or self.is_withholding(now) or self.synced_to < self.began_at:
            return 0
        return min((self.synced_to, *(self._has(each) for each in self.counted)))

    def runs_ahead(self, now: float) -> None:
        """Somebody wants `replicated`: confirms that do not wait for this disk.

        From then on this member, too, has all that was confirmed for this boot of its host only,
        and the list has to say so before the first such confirm.
        """
        others = tuple(each for each in self.copies if each.member != self.me)
        can_list = others and self.granted is None and self.may_write()
        if can_list and self.boot and Copy(self.me) in self.copies:
            self.copies = (Copy(self.me, self.boot), *others)
            self.does(Write(Copies(self.copies)))

    @property
    def may_run_ahead(self) -> bool:
        """The list says, and will say, that this member counts for this boot of its host only."""
        here = Copy(self.me, self.boot)
        is_listed = here in self.listed and here in self.copies and self.granted is None
        told = not self.options.electorate or self.lease.is_told(self.epoch, self.version)
        return is_listed and told

    @property
    def effective_level(self) -> Level:
        return Level.DISK_AND_REPLICATED if self.counted else Level.DISK

    @property
    def backups(self) -> list[str]:
        """That clients are told of."""
        ready = [
            each.member
            for each in self.followers.values()
            if each.is_announced and not each.is_leaving
        ]
        return sorted(ready, key=lambda member: (self.options.rank(member), member))

    @property
    def announced(self) -> str:
        """The first of them."""
        return next(iter(self.backups), "")

    def _has(self, member: str) -> int:
        follower = self.followers.get(member)
        return follower.has if follower is not None else 0

    # --- its journal --------------------------------------------------------------------------

    def wrote(self, last: Position, record: Record | None, now: float) -> None:
        """A frame was appended here."""
        self._ends_at(last, now)
        if isinstance(record, Copies):
            self.lists.append((last.number, record.copies))
        if record is not None and record == self.final:
            self.final_at = last.number
            self.handed_to, self.is_parked = self.hand_to, not self.hand_to

    def _ends_at(self, last: Position, now: float) -> None:
        """A replica that had all has its time for this frame from now on."""
        before = self.end
        self.last, self.end = last, last.number
        for follower in self.followers.values():
            if follower.has >= before:
                follower.since = now

    def synced(self, number: int, now: float) -> None:
        self.synced_to = max(self.synced_to, number)
        if self.granted is not None and number >= self.began_at > 0:
            self._began(now)
        self._progress(now)

    def began(self, last: Position, now: float) -> None:
        """`Began` was appended, as this frame."""
        assert self.granted is not None
        self._ends_at(last, now)
        self.began_at = last.number
        self.copies = self.granted.copies

    def _began(self, now: float) -> None:
        """`Began` is synced: it serves, or goes on with another list."""
        grant = self.granted
        assert grant is not None
        was_alone, self.granted = not self.counted, None
        self.epoch = grant.epoch
        self.handed_to, self.is_parked, self.has_left = "", False, False
        self.lists, self.version = [], in_epoch(self.began_at)
        self.listed = self.copies = grant.copies
        self.counted = self.others
        for follower in self.followers.values():
            follower.is_announced &= follower.member in self.counted
        self.becomes(State.LIVE if self.counted else State.ALONE)
        self.say_hello()
        if not self.serves_already:
            self.serves_already = True
            self.is_broken = False  # of the journal that it served with before
            self.log(Alert.TOOK_OVER, f"epoch {self.epoch}")
            self._serve()
            wait = self.options.backup_timeout
            self.holds_until = now + wait if wait else 0.0
        elif not self.counted and not was_alone:
            self.log(Alert.LEVEL_FELL, self.effective_level.value)
        self.renew(self.voters, now)
        self._list_without_those_that_leave()
        for member in sorted(self.counted - self.followers.keys()):
            self._replica_lost(member, "it is not linked", now)
        if self.is_stopping:
            self.stop_serving(hands_over=not self.parks, now=now)

    def has(self, member: str, stream: int, number: int, now: float) -> None:
        """A replica has confirmed all frames up to this number."""
        if member in self.followers and self.followers[member].stream == stream:
            self.followers[member].gets_on(number, now)
            self._progress(now)

    def follows_closely(self, member: str, stream: int, now: float) -> None:
        if member in self.followers and self.followers[member].stream == stream:
            self.followers[member].can_count = True
            self._progress(now)

    def _serve(self) -> None:
        self.does(Serve(self.epoch))

    def _progress(self, now: float) -> None:
        if self.state not in SERVING:
            return
        self._safe_lists(now)
        for follower in list(self.followers.values()):
            self._admit(follower, now)
        if self._gives_way(now):
            self._drain(now)

    # --- followers ----------------------------------------------------------------------------

    def _join(self, member: str, what: Join, now: float) -> None:
        refusal = self._refusal(member, what, now)
        if refusal:
            self.tell(member, NotJoined(refusal, what.stream))
            return
        is_tail = what.is_whole and bool(what.node) and self.has_frame(what.last)
        if member in self.counted and not is_tail and self.options.electorate is not None:
            self.tell(
                member, NotJoined("later", what.stream)
            )  # it may not lose its data while it counts
            self._replica_lost(member, "its journal is another one", now)
            return
        self.asked.pop(member, None)
        copy = self.copy_of(member, what.boot)
        self.followers[member] = Follower(copy, what.stream, now)
        self.tell(member, Joined(self.epoch, not is_tail, what.stream))
        self.does(Ship(member, not is_tail, what.stream))
        if member in self.counted:
            if what.has_left or copy not in self.copies:  # it stopped, or its host did
                others = tuple(each for each in self.copies if each.member != member)
                self.copies = (*others, copy)
                self.does(Write(Copies(self.copies)))
            self._is_back(member, now)
        self._progress(now)

    def _refusal(self, member: str, what: Join, now: float) -> str:
        if self.state not in SERVING or self.state is State.HANDING_OVER:
            return "later"
        if what.node not in (b"", self.node):
            return "node"
        if what.node and self.is_over(what.last.epoch, what.last):
            self.fence(f"{member} has epoch {what.last.epoch}", now)
            return "stale"
        is_leaving = not any(copy.member == member for copy in self.copies)
        if member in self.counted and (self._is_going_on or is_leaving):
            return "later"
        taken = (self.followers.keys() | self.counted) - {member}
        places = self.options.max_replicas - len(taken)
        self.asked = {
            each: at for each, at in self.asked.items() if at > now - 2 * self.options.retry_wait
        }
        rank = self.options.rank(member)
        ahead = [each for each in self.asked if self.options.rank(each) < rank]
        if member not in self.counted and places <= len(ahead):
            self.asked[member] = now
            return "already-replicating"
        return ""

    def is_over(self, epoch: int, last: Position) -> bool:
        """Somebody has this one, and it is not the one that begins here."""
        begins = self.granted is not None and self.granted.epoch == epoch
        return epoch > self.epoch and not (begins and last.holder == self.me)

    @property
    def _is_going_on(self) -> bool:
        """A vote without a replica has gone so far that it must end."""
        if self.purpose is Purpose.GO_ON and self.candidate is not None:
            return not self.candidate.may_be_dropped
        return self.granted is not None

    def _is_back(self, member: str, now: float) -> None:
        """A replica that counts follows again, before anything was decided without it."""
        if self.purpose is Purpose.GO_ON:
            self.drop_vote()
        if self.state is State.SUSPENDED and self.counted <= self.followers.keys():
            self.becomes(State.LIVE)
            self.log(Alert.LEVEL_RESTORED, self.effective_level.value)

    def _admit(self, follower: Follower, now: float) -> None:
        """In: it has everything; from its record on confirms wait for it."""
        member = follower.member
        has_all = follower.can_count and follower.has >= self.end
        if follower.is_leaving or self.granted is not None or not has_all:
            self._announce(follower, now)
        elif member not in self.counted and self.state in (State.LIVE, State.ALONE):
            # a majority of the voters knows this node, before anybody else may be granted it
            is_known = not self.options.electorate or self.lease.is_told(self.epoch, self.version)
            if is_known and not any(copy.member == member for copy in self.copies):
                self.counted |= {member}
                self.copies = (*self.copies, follower.copy)
                self.does(Write(Copies(self.copies)))
        else:
            self._announce(follower, now)

    def _announce(self, follower: Follower, now: float) -> None:
        """It is told that it is in sync when the voters know."""
        if follower.is_announced:
            return
        if not any(copy.member == follower.member for copy in self.listed):
            return
        if self.options.electorate and not self.lease.is_told(self.epoch, self.version):
            return
        follower.is_announced = True
        self.tell(follower.member, InSync(self.epoch))
        self.log(Alert.IN_SYNC, follower.member)
        if self.state is State.ALONE:
            self.becomes(State.LIVE)
            self.log(Alert.LEVEL_RESTORED, self.effective_level.value)
        if len(self.counted) >= self.options.max_replicas:
            self.holds_until = 0.0

    def _safe_lists(self, now: float) -> None:
        """Records of lists that are synced here and at everybody who is on them."""
        safe = [at for at, each in enumerate(self.lists) if self._is_safe(*each)]
        if safe:  # those before it are replaced by it, safe or not
            number, self.listed = self.lists[safe[-1]]
            self.version = in_epoch(number)
            del self.lists[: safe[-1] + 1]
            self.renew(self.voters, now)
        if not self.lists and self.options.electorate is None:
            self._drop_those_that_left(now)

    def _is_safe(self, number: int, copies: tuple[Copy, ...]) -> bool:
        members = {copy.member for copy in copies} - {self.me}
        return self.synced_to >= number and all(self._has(each) >= number for each in members)

    def voters_told(self, now: float) -> None:
        for follower in list(self.followers.values()):
            self._admit(follower, now)
        if not self.lists and self.lease.is_told(self.epoch, self.version):
            self._drop_those_that_left(now)
        if self._gives_way(now):
            self._drain(now)

    def _drop_those_that_left(self, now: float) -> None:
        listed = {copy.member for copy in self.listed}
        for member in sorted(self.counted - listed):
            if member in self.followers and self.followers[member].is_leaving:
                self._forget(member)
                self.counted -= {member}
                if not self.counted:
                    self.log(Alert.LEVEL_FELL, self.effective_level.value)
                    if self.state in (State.LIVE, State.SUSPENDED):
                        self.becomes(State.ALONE)
                elif self.state is State.SUSPENDED and self.counted <= self.followers.keys():
                    self.becomes(State.LIVE)  # others had not gone, but this one was lost

    def _forget(self, member: str) -> None:
        if self.followers.pop(member, None) is not None:
            self.does(StopShipping(member))

    # --- a replica is lost --------------------------------------------------------------------

    def _leaves(self, member: str, now: float) -> None:
        """A backup stops in good order, and has noted that."""
        follower = self.followers.get(member)
        if follower is None:
            return
        if member not in self.counted:
            self._forget(member)
            return
        self._goes(follower, "has left", now)

    def _goes(self, follower: Follower, how: str, now: float) -> None:
        """For ever, so that no vote and no epoch is needed: a record says so."""
        member, follower.is_leaving = follower.member, True
        if self.state is State.HANDING_OVER and self._hands_over_without(member, how, now):
            return
        self._list_without_those_that_leave()

    def _list_without_those_that_leave(self) -> None:
        """Not while an epoch begins: its first record names who is in sync, and may name fewer."""
        going = {member for member, each in self.followers.items() if each.is_leaving}
        left = tuple(copy for copy in self.copies if copy.member not in going)
        if self.granted is None and left != self.copies:
            # alone, nothing is confirmed ahead of this disk, and the record is behind all else
            self.copies = left if len(left) > 1 else (Copy(self.me),)
            self.does(Write(Copies(self.copies)))

    def lose_replica(self, member: str, why: str, now: float) -> None:
        follower = self.followers.get(member)
        if follower is not None and follower.is_leaving:
            return
        self._forget(member)
        if member in self.counted:
            self._replica_lost(member, why, now)

    def _replica_lost(self, member: str, why: str, now: float) -> None:
        """One that confirms wait for."""
        self.log(Alert.REPLICA_LOST, f"{member}: {why}")
        if self.state is State.HANDING_OVER and self._hands_over_without(member, "was lost", now):
            return
        if self.state not in SERVING or self.granted is not None or self._gives_way(now):
            return
        self._suspend(f"{member} is lost")
        self.looks_around()
        self._go_on(now)

    def _suspend(self, why: str) -> None:
        if self.state is not State.SUSPENDED:
            self.becomes(State.SUSPENDED, why)
            self.log(Alert.SUSPENDED, why)

    def _go_on(self, now: float) -> None:
        """Without those that are lost, if that may be; not while it is isolated: they may serve."""
        if self.is_isolated:
            return
        here = {m for m in self.counted if m in self.followers and not self.followers[m].is_leaving}
        copies = tuple(copy for copy in self.copies if copy.member in here | {self.me})
        grant = Grant(self.epoch + 1, self.me, copies)
        options = self.options
        if options.electorate is None:
            if options.on_partition == CONTINUE_ALONE or not options.activates:
                self._next_epoch(grant)
        elif not options.votes:
            self._next_epoch(grant)
        elif self.candidate is None or self.candidate.may_be_dropped:
            self.asks(Purpose.GO_ON, grant, now)

    def _next_epoch(self, grant: Grant) -> None:
        """Of a live that goes on."""
        self.drop_vote()
        self.granted = grant = self.as_holder(grant)
        self.began_at = 0
        self.does(Begin(grant.epoch, grant.copies, is_closed=self.is_closed))

    def replica_proven_dead(self, member: str, now: float) -> None:
        """On this host: it can serve nobody, so nobody has to be asked.

        With `continue-alone` an epoch begins, as for a lost link.  Else none: whoever else counts
        may not hear of it before this one is dead as well, and would begin the same.
        """
        if self.options.electorate is not None or self.granted is not None:
            return
        copy = next((each for each in self.copies if each.member == member), None)
        if member not in self.counted or copy is None:
            return
        if self.options.on_partition == CONTINUE_ALONE:
            self._forget(member)
            copies = tuple(each for each in self.copies if each != copy)
            self._next_epoch(Grant(self.epoch + 1, self.me, copies))
        else:
            follower = self.followers.setdefault(member, Follower(copy, 0, now))
            self._goes(follower, "is dead", now)

    def go_on_alone(self, now: float) -> None:
        """`ha continue`: a person says that no replica serves."""
        if self.state is State.SUSPENDED and self.granted is None:
            self.drop_vote()
            self.log(Alert.FORCED, f"epoch {self.epoch + 1}, alone")
            self._next_epoch(self.alone_grant)

    # --- what `serving.py` does ---------------------------------------------------------------

    @abstractmethod
    def fence(self, why: str, now: float) -> None: ...
    @abstractmethod
    def _gives_way(self, now: float) -> bool: ...
    @abstractmethod
    def stop_serving(self, *, hands_over: bool, now: float) -> None: ...
    @abstractmethod
    def _drain(self, now: float) -> None: ...
    @abstractmethod
    def _hands_over_without(self, member: str, how: str, now: float) -> bool: ...

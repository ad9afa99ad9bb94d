"""A member of a replicated node that is in a cluster: what it is, its vote, and its voters."""

from __future__ import annotations

from functools import partial

from shmbroker.ipc.instance.config.config import Config
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.clustered.members import Members, Standing, Tell
from shmbroker.netbridge.clustered.setup import keep_lives, setup, show
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.member.standing import State
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.netbridge.replicated.votes import Votes


class InCluster:
    def __init__(self, config: Config, members: Members) -> None:
        self.members = members
        self._config = config
        self._standing: Standing | None = None
        self._is_in_doubt = False

    def changed(self, acting: Acting) -> None:
        """In the network thread."""
        machine = acting.machine
        if not machine.node:
            return
        standing = Standing(machine.node, machine.epoch, machine.is_of_cluster)
        former = self._standing
        if standing != former:
            self._standing = standing
            begins = standing.is_live and (former is None or not former.is_live)
            if begins:
                acting.votes = Votes(acting)
                self._is_in_doubt = False
            votes = acting.votes
            self.members.becomes(standing, None if votes is None else lambda: votes)
        is_in_doubt = machine.state is State.SUSPENDED
        if is_in_doubt != self._is_in_doubt:
            self._is_in_doubt = is_in_doubt
            self.members.doubts(is_in_doubt)


def joined(
    config: Config, given: Given, thread: NetworkThread, tell: Tell, owner: Owner
) -> InCluster | None:
    """None: there is no [cluster.NAME]."""
    found = setup(config, given, owner.uri)
    if found is None:
        return None

    def keeps(quorum: Quorum) -> None:
        if not quorum.recalculates:
            keep_lives(config, quorum)

    shows = partial(show, config)
    return InCluster(config, Members(
        thread, found, tell, shows, keeps, owner.others_are, owner.holds
    ))  # fmt: skip

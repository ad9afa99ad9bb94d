"""A member of a replicated node as a process: `shmbroker run` with ha.policy = "replication".

Signals and orders come to the main thread; all that is decided is of the network thread.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.broker.journaler import keep_memory
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import (
    interpreter,
    listed,
    notify,
    ordering,
    process,
    promotion,
    reloading,
    signals,
)
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.status import RUN, Sign, Status
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.group import OfMembers
from shmbroker.netbridge.broker.lines import Lines
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.broker.voters import Chosen, chosen
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.clustered.options import without_cluster
from shmbroker.netbridge.clustered.owner import CLUSTER
from shmbroker.netbridge.clustered.owner import order as of_cluster
from shmbroker.netbridge.clustered.voters import NOBODY, Lives
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.election.voters import Voters
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.member.codec import Here
from shmbroker.netbridge.member.option import Replication
from shmbroker.netbridge.member.standing import SERVING
from shmbroker.netbridge.replicated import options, shown
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.netbridge.replicated.answers import Answers
from shmbroker.netbridge.replicated.draining import Draining
from shmbroker.netbridge.replicated.in_cluster import InCluster, joined
from shmbroker.netbridge.replicated.ordered import order
from shmbroker.netbridge.replicated.process import now
from shmbroker.netbridge.replicated.programs import Programs
from shmbroker.netbridge.replicated.reaching import Reaching
from shmbroker.netbridge.replicated.showing import HA, Showing
from shmbroker.netbridge.replicated.store import Store
from shmbroker.netbridge.replicated.talks import Address, Talks
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.words import Standing

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class ReplicatedInstance:
    """Made of its configuration; run() is all that there is to do with it."""

    def __init__(self, config: Config, network: Network, known: Credentials) -> None:
        self.config = config
        self._network, self._known = network, known
        self.log = Log(config.log, config.name)
        self.why = ""
        self.reload: Callable[[Config], reloading.Reloaded] | None = None
        self._process = process.this()
        self._lines = Lines(self.log.write, lambda: now())
        self._inbox: SimpleQueue[Callable[[], int | None]] = SimpleQueue()
        self._shown: Status | None = None
        self._orders = ordering.Orders(config.folder, self.log)
        self._reloads = ordering.Answers(config.folder / RUN / reloading.ANSWER)
        self._said = ""
        """Of replication, in the log."""
        self._told = ""
        self._is_ready = False
        sign = Sign(config.folder)
        try:
            self._replication = options.checked(config, network)
            self.credential = options.credential(config, network, known)
            self._store = Store(config, options.terms(self._replication))
        except (Error, OSError) as error:
            self.log.write("failed", why=told(error))
            sign.failed(told(error))
            sign.close()
            raise
        self._showing = Showing(config.folder, sign)
        others = without_cluster(options.without_members(network))
        group = OfMembers()
        self.owner = Owner(config, others, known, self.log, group)
        self.owner.fails = lambda why: self._inbox.put(lambda: self._failed(why))
        self._programs = Programs(self.owner, group)
        self._in_cluster: InCluster | None = None
        self._draining: Draining | None = None
        self._voters: Voters | None = None
        self._reaching: Reaching | None = None
        self._acting: Acting
        self._thread: NetworkThread

    def run(self) -> int:
        """Until it is stopped, or cannot go on: the exit code.

        Threads of ours may still sleep in the kernel: leave by os._exit.
        """
        keep_memory()
        interpreter.shares_often()
        signals.heard(
            {
                **dict.fromkeys(SIGNALS, self._stopped),
                signal.SIGHUP: self._asked_to_reload,
                ordering.SIGNAL: self._asked_to,
            }
        )  # from then on there are orders: they wait until it has begun
        self._showing.status(Status("starting", process=self._process))
        self._showing.wait()  # who wants it to stop reads there whom to signal
        try:
            self._begin()
        except (Error, OSError) as error:
            return self._failed(told(error))
        interpreter.keeps_what_is_there()
        while (code := self._inbox.get()()) is None:
            pass
        self._showing.wait()
        return code

    def _begin(self) -> None:
        config, found = self.config, self._replication
        warm, damage = self._store.opened()
        if damage:
            self.log.write("warning", why=damage)
        self._thread = thread = NetworkThread()
        thread.admit(self._known.known_keys)
        ours = Identity(bytes(16), os.urandom(16), config.name, Standing.NONE, 0)
        given = Given(self._network, self._known)
        try:
            self._in_cluster = joined(config, given, thread, self._lines.tell, self.owner)
            picked = chosen(config, given, thread, ours, self._lines.tell)
        except Error:
            warm.close()  # a start makes other rings
            raise
        if picked is None and self._in_cluster is not None and found.can_ask:
            picked = Chosen(NOBODY, Lives(self._in_cluster.members))
        self._acting = acting = Acting(
            thread, self._store, warm,
            options.member(
                config, self._network, None if picked is None else picked.electorate
            ),
            self, process.boot(), self._lines.tell,
        )  # fmt: skip
        here = replace(
            self._here(options.group_name(config, self._network)), uri=self.owner.uri,
            engine="" if picked is None else picked.engine,
        )  # fmt: skip
        acting.talks = Talks(
            thread, ours, here, config.members, self._listens(),
            self.credential, self._known, times_of(self._network.link_defaults), acting,
            self._lines.tell, takes_hosted=options.asks_for_backups(self._network),
        )  # fmt: skip
        if picked is not None:
            acting.voters = self._voters = picked.voters
        thread.ask(acting.begin)
        self._look_around(found)
        if picked is not None:
            picked.voters.begin(Answers(acting))
        acting.talks.begin()
        thread.tell_failure(self.owner.failed)

    def _look_around(self, found: Replication) -> None:
        """`network-check`."""
        if self._reaching is not None:
            self._reaching.close()
            self._reaching = None

        def tell(why: str) -> None:
            self._in_thread(lambda acting: acting.isolated(why))

        if found.network_check:
            times = times_of(self._network.link_defaults)
            self._reaching = Reaching(found.network_check, times, tell)
        else:
            tell("")

    def _listens(self) -> list[Address]:
        return [
            Address(f"tcp://{each.uri.peer}", self._key_of(each.credentials))
            for each in options.listening(self._network)
        ]

    def _here(self, group: str) -> Here:
        me = self._process
        return Here(group, me.pid, me.started, me.boot, me.namespace)

    def _key_of(self, name: str | None) -> Any:
        found = self._known.named(name) if name is not None else None
        if found is not None:
            return found.keys[0]
        assert self._known.pair is not None, "the configuration was checked"
        return self._known.pair

    # --- of the network thread: what the member does --------------------------------------------

    def prepares(self, node: bytes, epoch: int) -> None:
        if not self._acting.machine.options.drains:
            self.owner.prepare(node, epoch)

    def serves(self, node: bytes, epoch: int) -> None:
        self.owner.begin(node, epoch)
        listed.make_in_background(self.config, self.log)

    def drains(self, broker: Broker, gave: Callable[[bool], None]) -> None:
        wanted, cluster, joined = self._network.scale_down, self._network.cluster, self._in_cluster
        assert wanted is not None, "the machine drains"
        assert cluster is not None, "the configuration was checked"
        assert joined is not None, "it is in a cluster"
        self.owner.leaves()
        self._draining = Draining(
            self.config, cluster.name, wanted, joined.members, self._lines.tell, broker, gave
        )

    def stops_serving(self, *, at_once: bool, uri: str) -> None:
        draining, self._draining = self._draining, None
        if draining is not None:
            draining.end()
        if uri:
            self.owner.moves(uri)
        self.owner.end(at_once=at_once)

    def looks_around(self) -> None:
        if self._reaching is not None:
            self._reaching.again()

    def refusal(self, epoch: int, node: bytes, old_live: str) -> str | None:
        why = promotion.refusal(self.config, epoch, node, old_live)
        if why and self.config.on_promote_failure == "continue":
            self.line("on-promote failed", why=why)
            return None
        return why

    def line(self, event: str, **fields: object) -> None:
        self.log.write(event, **{name: each for name, each in fields.items() if each != ""})

    def changed(self) -> None:
        machine, progress = self._acting.machine, self._acting.progress
        if self._in_cluster is not None:
            self._in_cluster.changed(self._acting)
        self._programs.changed(self._acting)
        status = Status(
            shown.state_of(machine),
            machine.is_eligible and machine.state not in SERVING,
            machine.epoch, machine.why, self._process,
            shown.replication_of(machine, progress),
        )  # fmt: skip
        if status == self._shown:
            return
        former, self._shown = self._shown, status
        if former is None or former.state != status.state:
            self.line(status.state, role=self.config.role, epoch=status.epoch, why=status.why)
        self._say(shown.replication_of(machine), status.epoch)
        self._showing.status(status)
        self._show()
        waits = self.config.wait_for_activation and machine.options.is_preferred
        if not self._is_ready and status.state != "starting":
            if status.state == "live" or not waits:
                self._is_ready = True
                threading.Thread(target=self._is_shown, args=(status.state,), daemon=True).start()

    def _is_shown(self, state: str) -> None:
        """Units that start behind this one read the status."""
        self._showing.wait()
        notify.ready(state)

    def _say(self, replication: str, epoch: int) -> None:
        """In the log, without the progress of a sync."""
        if replication != self._said:
            self._said = replication
            self.line("replication", state=replication, epoch=epoch)

    def _show(self) -> None:
        acting = self._acting
        self._showing.whole(shown.whole(acting.machine, acting.lag, acting.progress))

    def ends(self, is_failure: bool, why: str) -> None:
        self.changed()
        self._inbox.put(lambda: self._ended(is_failure, why))

    # --- of the main thread -------------------------------------------------------------------

    def _failed(self, why: str) -> int:
        self.why = why
        self.log.write("failed", why=why)
        self._showing.status(Status("failed", why=why, process=self._process))
        self._showing.wait()
        return 1

    def _ended(self, is_failure: bool, why: str) -> int:
        self.why = why
        self._acting.talks.close()
        if self._voters is not None:
            self._voters.close()
        if self._in_cluster is not None:
            self._in_cluster.members.close()
        self.owner.end(at_once=True)  # of one that was passive; a live's has ended before
        if is_failure or self._acting.served is None:  # nobody serves its rings, or sees them
            with suppress(Error, OSError):
                self._store.retire()
        return 1 if is_failure else 0

    def _in_thread(self, step: Callable[[Acting], object]) -> None:
        self._thread.call(lambda: step(self._acting))

    def _stopped(self) -> None:
        self._inbox.put(self._stop)

    def _stop(self) -> None:
        self._in_thread(lambda acting: acting.does(acting.machine.stop(now())))

    def _asked_to_reload(self) -> None:
        self._inbox.put(self._reload)

    def _reload(self) -> None:
        if self.reload is None:
            return
        former = self.config
        self.config, answer = reloading.again(self.reload, former, self.log)
        has_command = bool(self.config.on_promote)
        self._in_thread(lambda acting: acting.machine.runs_command(has_command))
        if self._shown is not None and self._shown.state == "live":
            listed.reloaded(former, self.config, self.log)
        self._reloads.asked(answer)
        # who hears the answer may use what the network has from then on
        threading.Thread(target=self._answer, args=(answer,), daemon=True).start()

    def _answer(self, answer: dict[str, Any]) -> None:
        self.owner.settles()
        with suppress(OSError):
            self._reloads.write(answer, answer)

    def reloaded(self, network: Network, known: Credentials) -> None:
        """ConfigError: it could not be a member any more, and nothing is changed."""
        found = options.checked(self.config, network)
        self.credential = options.credential(self.config, network, known)
        self._network, self._known = network, known
        self._in_thread(lambda acting: acting.reloaded(found))
        self._look_around(found)
        self._thread.learns(known)
        others = without_cluster(options.without_members(network))
        uri = self.owner.uri_by(others)
        self._acting.talks.reload(self._listens(), known, uri)
        if self._in_cluster is not None:
            self._in_cluster.members.reload(Given(network, known), uri)
        self.owner.reload(others, known)

    def _asked_to(self) -> None:
        self._inbox.put(self._carry_out)

    def _carry_out(self) -> None:
        if (given := self._orders.next()) is not None:
            threading.Thread(target=self._order, args=(given,), daemon=True).start()

    def _order(self, given: Mapping[str, Any]) -> None:
        why = said = ""
        try:
            if given.get("noun") == HA and given.get("verb") == "show":
                self._thread.ask(self._show)
            elif given.get("noun") == HA:
                why = self._thread.ask(lambda: order(self._acting, given, self.line))
            elif given.get("noun") == CLUSTER and self._in_cluster is not None:
                said = of_cluster(self._in_cluster.members, given, self.log)
            else:
                said = self.owner.order(given)
        except (Error, OSError) as error:
            why = told(error)
        self._showing.wait()
        with suppress(OSError):
            self._orders.answer(given, why, said)

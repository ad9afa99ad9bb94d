"""Hosts of their own: network namespaces, for tests that run as root.

A namespace has no name, only a descriptor of the process that made it, so the kernel removes it and
all that is in it with that process, however the test ends.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def has_hosts() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "nft")))


def _checked(result: int, doing: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{doing}: {os.strerror(ctypes.get_errno())}")


def _new_namespace() -> int:
    """Made by a child, so that we stay where we are."""
    made, ready = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        failed = _libc.unshare(CLONE_NEWNET)
        os.write(made[1], b"1" if failed else b"0")
        os.close(ready[1])
        os.read(ready[0], 1)  # until our parent has opened it
        os._exit(0)
    try:
        os.close(made[1])
        _checked(int(os.read(made[0], 1)), "making a network namespace")
        return os.open(f"/proc/{child}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (made[0], ready[0], ready[1]):
            os.close(descriptor)
        os.waitpid(child, 0)


class Host:
    def __init__(self, address: str) -> None:
        self.address = address
        self._namespace = _new_namespace()
        self.run("ip", "link", "set", "lo", "up")

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._namespace}"

    def enter(self) -> None:
        """This thread is on this host from now on."""
        _checked(_libc.setns(self._namespace, CLONE_NEWNET), "entering a host")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is there for the block: sockets that it makes stay there."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.enter()
            yield
        finally:
            _checked(_libc.setns(before, CLONE_NEWNET), "leaving a host")
            os.close(before)

    def plugged(self) -> None:
        """The wire is in: it has its address."""
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "wire")
        self.run("ip", "link", "set", "wire", "up")

    def run(self, *command: str, text: str | None = None) -> str:
        done = subprocess.run(  # nothing else happens in that child
            command, preexec_fn=self.enter, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    # --- faults -------------------------------------------------------------------------------

    def _rules(self, *rules: str) -> None:
        """Of what comes in; none: all is well again."""
        text = "add table inet faults; delete table inet faults;\n"
        if rules:
            text += "table inet faults { chain in { type filter hook input priority 0;\n"
            text += "".join(f"{rule};\n" for rule in rules) + "}\n}\n"
        self.run("nft", "-f", "-", text=text)

    def hears_nothing(self) -> None:
        """What comes is dropped: sockets stay open."""
        self._rules('iifname != "lo" drop')

    def hears_nothing_of(self, addresses: Sequence[str]) -> None:
        self._rules(*(f"ip saddr {each} drop" for each in sorted(addresses)))

    def resets(self) -> None:
        """What comes is answered with a reset: sockets close."""
        self._rules('iifname != "lo" meta l4proto tcp reject with tcp reset')

    def loses(self, percent: int) -> None:
        self._rules(f'iifname != "lo" numgen random mod 100 < {percent} drop')

    def heal(self) -> None:
        self._rules()

    def close(self) -> None:
        os.close(self._namespace)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """With nothing between them."""
    with ExitStack() as opened:
        found = []
        for address in ("10.99.0.1", "10.99.0.2"):
            found.append(Host(address))
            opened.callback(found[-1].close)
        near, far = found
        yield near, far


@contextmanager
def wired() -> Iterator[tuple[Host, Host]]:
    """With a cable (a veth pair)."""
    with two_hosts() as (near, far):
        near.run("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire",
                 "netns", far.path)  # fmt: skip
        for host in (near, far):
            host.plugged()
        yield near, far


class Rack:
    """Hosts on one switch, by name."""

    def __init__(self, opened: ExitStack, names: Sequence[str]) -> None:
        self.hosts: dict[str, Host] = {}
        self._cuts: set[tuple[str, str]] = set()
        switch = self._new(opened, "10.99.1.254")
        switch.run("ip", "link", "add", "switch", "type", "bridge")
        switch.run("ip", "link", "set", "switch", "up")
        for number, name in enumerate(names, 1):
            host = self.hosts[name] = self._new(opened, f"10.99.1.{number}")
            port = f"port{number}"
            self._plug(opened, switch, port, name)
            switch.run("ip", "link", "set", port, "master", "switch", "up")
            host.plugged()

    def _plug(self, opened: ExitStack, switch: Host, port: str, name: str) -> None:
        switch.run("ip", "link", "add", port, "type", "veth", "peer", "name", "wire",
                   "netns", self.hosts[name].path)  # fmt: skip

    @staticmethod
    def _new(opened: ExitStack, address: str) -> Host:
        host = Host(address)
        opened.callback(host.close)
        return host

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def cut(self, one: str, other: str, *, both_ways: bool = True) -> None:
        """The other one hears nothing more of this one."""
        self._cuts |= {(one, other), (other, one)} if both_ways else {(one, other)}
        self._rule()

    def isolate(self, name: str) -> None:
        """At once: who lost one of the others would ask the rest."""
        others = self.hosts.keys() - {name}
        self._cuts |= {pair for each in others for pair in ((name, each), (each, name))}
        self._rule()

    def heal(self) -> None:
        self._cuts.clear()
        self._rule()

    def _rule(self) -> None:
        for name, host in self.hosts.items():
            mute = [self.hosts[one].address for one, other in self._cuts if other == name]
            host.hears_nothing_of(mute)


@contextmanager
def rack(*names: str) -> Iterator[Rack]:
    with ExitStack() as opened:
        yield Rack(opened, names)

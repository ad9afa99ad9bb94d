"""Debian's packages: what a peer's server comes in, installed by name when we may."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 600
POLICY = Path("/usr/sbin/policy-rc.d")
"""Asked before a service is started; 101 is no. https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt"""


class NotInstalled(Exception):
    """It is not there, and cannot be had; the message says what to do."""


def install(package: str) -> None:
    """NotInstalled unless it is installed afterwards. The services that it has are not started."""
    if version(package):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotInstalled(f"sudo apt-get install {package}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with services_not_started():
        for command in ("update -qq", f"install -y -qq --no-install-recommends {package}"):
            done = subprocess.run(
                ["apt-get", *command.split()],
                env=quiet,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
    if done.returncode:
        raise NotInstalled(f"apt-get install {package}: {done.stderr.strip().splitlines()[-1:]}")


def version(package: str) -> str:
    """Of what is installed; empty if it is not."""
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", package]
    if not shutil.which(query[0]):
        return ""
    said = subprocess.run(query, capture_output=True, text=True).stdout
    state, _, found = said.partition(" ")
    return found if state == "installed" else ""


@contextmanager
def services_not_started() -> Iterator[None]:
    """A server that was installed to be measured must not run beside what is measured."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()

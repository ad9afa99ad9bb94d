"""systemd units: of one instance, or of all instances in a folder."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.leaving import SOMETHING_STAYED

UNIT: Final = """\
[Unit]
Description=shmbroker {name}
Documentation=man:shmbroker(1)
Wants=network-online.target
After=network-online.target
RequiresMountsFor={places}

[Service]
Type=notify
ExecStart={command} run {folder}
ExecReload={command} config reload {folder}
User={user}
UMask=0077
# stopping writes what is there, hands over, or gives all away, and has time-outs of its own; a
# second signal would cut that short
KillMode=mixed
TimeoutStopSec=infinity
# a backup reports its start when it waits, a live when it has restored its queues
TimeoutStartSec=infinity
Restart=on-failure
RestartPreventExitStatus={something_stayed}
RestartSec=1

# the segments in /dev/shm outlive the process: that is what a quick restart lives from
RemoveIPC=no
LimitNOFILE=65536
LimitMEMLOCK=infinity

NoNewPrivileges=yes
CapabilityBoundingSet=
LockPersonality=yes
PrivateTmp={private}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=full
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
SystemCallArchitectures=native
# left out, because they break it (docs/service.md): DynamicUser, RestrictSUIDSGID, PrivateUsers,
# ProtectProc, MemoryDenyWriteExecute

[Install]
WantedBy=multi-user.target
"""

BLANKS_AND_QUOTES: Final = " \t\n\"'\\"
TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))


def command() -> str:
    return quoted(Path(sys.argv[0]).resolve())


def unit_text(config: Config) -> str:
    """Of one instance, as this user."""
    places = (config.folder, config.store, config.journal, config.pages, config.log.parent)
    return UNIT.format(
        something_stayed=SOMETHING_STAYED,
        name=" ".join(config.name.split()).replace("%", "%%"),
        places=" ".join(dict.fromkeys(quoted(each) for each in places if each is not None)),
        command=command(),
        folder=argument(config.folder),
        user=getpass.getuser(),
        private="no" if any(is_temporary(each) for each in places if each) else "yes",
    )


def template_text(folder: Path, user: str) -> str:
    """Of `shmbroker@NAME.service`, for the instance NAME in this folder."""
    return UNIT.format(
        something_stayed=SOMETHING_STAYED,
        name="%i",
        places=f"{quoted(folder)}/%i",
        command=command(),
        folder=f"{argument(folder)}/%i",
        user=user,
        private="no" if is_temporary(folder) else "yes",
    )


def is_temporary(place: Path) -> bool:
    """With PrivateTmp the broker would not find it."""
    return any(each in place.parents for each in TEMPORARY)


def quoted(place: Path) -> str:
    """A path as a unit has it: blanks, quotes, backslashes and percent signs have meanings."""
    text = (f"\\x{ord(each):02x}" if each in BLANKS_AND_QUOTES else each for each in str(place))
    return "".join(text).replace("%", "%%")


def argument(place: Path) -> str:
    """A path in a command, where a dollar sign has a meaning as well."""
    return quoted(place).replace("$", "$$")

"""The systemd unit of an instance."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

from shmbroker.ipc.instance.config.config import Config

UNIT = """\
[Unit]
Description=shmbroker {name}
RequiresMountsFor={store}

[Service]
Type=notify
ExecStart={command} run {folder}
User={user}
# stopping writes what is there; a second signal would cut that short
KillMode=mixed
TimeoutStopSec=60
TimeoutStartSec=infinity
Restart=on-failure
RestartSec=1
# the segments in /dev/shm outlive the process: that is what a quick restart lives from
RemoveIPC=no
PrivateTmp=yes
NoNewPrivileges=yes
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""


def unit_text(config: Config) -> str:
    command = Path(sys.argv[0]).resolve()
    return UNIT.format(
        name=config.name,
        store=config.store,
        command=command,
        folder=config.folder,
        user=getpass.getuser(),
    )

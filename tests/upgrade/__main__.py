"""python -m tests.upgrade COMMIT: from that commit to what is installed here (make upgrade)."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.conftest import vhost_for_a_while
from tests.upgrade.installation import HERE, Installation, of_commit
from tests.upgrade.rolling import Rolling, RollingReplicated


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade", description=__doc__)
    parser.add_argument("commit", help="the version before")
    old = of_commit(parser.parse_args().commit)
    return max(upgraded(kind, old) for kind in (Rolling, RollingReplicated))


def upgraded(kind: type[Rolling], old: Installation) -> int:
    with tempfile.TemporaryDirectory() as folder, vhost_for_a_while() as vhost:
        rolling = kind(Path(folder), vhost, old, HERE)
        try:
            report = rolling.run(compares=True)
        finally:
            rolling.close()
    sys.stdout.write("\n".join([str(kind.__doc__), *report.lines]) + "\n")
    sys.stdout.flush()
    return int(bool(report.lost or report.twice))


if __name__ == "__main__":
    sys.exit(main())

"""The program: what is set before anything heavy loads, then the command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the ``kernelweave`` command on the arguments of the process."""
    # spinning threads slow each other down on shared cores
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from .app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

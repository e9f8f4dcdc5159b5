"""MOSEK: absent, without a licence, or licensed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

_PROBE = """
import mosek
with mosek.Env() as env:
    env.checkoutlicense(mosek.feature.pton)
"""
# Seconds for a licence server, beyond which `doctor` would look hung.
_PATIENCE = 20.0


def mosek_licence() -> str:
    """Return the state of MOSEK's licence, asked for in a process of its own.

    A licence server may be slow and a wheel may be broken; neither reaches this process.
    """
    if importlib.util.find_spec("mosek") is None:
        return "absent (not needed: Clarabel is the default)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"installed, but its licence server did not answer in {_PATIENCE:.0f} s"
    if done.returncode == 0:
        return "licensed"
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    if "icense" in last:
        return f"installed without a licence, so Clarabel is used ({last})"
    return f"installed, but it does not load ({last})"

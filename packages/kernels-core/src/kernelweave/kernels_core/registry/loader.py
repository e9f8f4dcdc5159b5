"""Find and load plugins, one at a time, so that none can break the host.

pluggy's own loader stops at the first plugin that fails to import and says nothing about
duplicate names or a forgotten marker; this one records each of these and goes on.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings

from ..exceptions import DuplicateNameError, KernelWeaveWarning
from .store import HooklessPluginError, PluginRecord, Registry

GROUP = "kernelweave"
BLOCK_VARIABLE = "KERNELWEAVE_BLOCK_PLUGINS"


def blocked_names() -> set[str]:
    """Return the plugin or distribution names that the environment blocks."""
    return {name.strip() for name in os.environ.get(BLOCK_VARIABLE, "").split(",") if name.strip()}


def _entry_points() -> list[tuple[str, str, importlib.metadata.EntryPoint]]:
    """Return (distribution, version, entry point); our own first, then by name."""
    found: dict[tuple[str, str], tuple[str, str, importlib.metadata.EntryPoint]] = {}
    for dist in importlib.metadata.distributions():
        points = [point for point in dist.entry_points if point.group == GROUP]
        if points:
            name = dist.metadata["Name"] or "unknown"
            for point in points:
                found.setdefault((name, point.name), (name, dist.version, point))
    return sorted(
        found.values(), key=lambda row: (not row[0].startswith("kernelweave-"), row[0], row[2].name)
    )


def _load_one(
    registry: Registry, dist: str, version: str, point: importlib.metadata.EntryPoint
) -> PluginRecord:
    try:
        provides = registry.add(point.load(), name=f"{dist}:{point.name}", source=dist)
    except DuplicateNameError as error:
        return PluginRecord(point.name, dist, version, "duplicate", str(error))
    except HooklessPluginError as error:
        return PluginRecord(point.name, dist, version, "hookless", str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may raise anything)
        cause = f"{type(error).__name__}: {error}"
        return PluginRecord(point.name, dist, version, "broken", cause)
    return PluginRecord(point.name, dist, version, "loaded", provides=provides)


def load_plugins(registry: Registry) -> list[PluginRecord]:
    """Load every installed plugin into ``registry`` and report on each."""
    blocked = blocked_names()
    records = []
    for dist, version, point in _entry_points():
        if point.name in blocked or dist in blocked:
            cause = f"blocked by {BLOCK_VARIABLE}"
            records.append(PluginRecord(point.name, dist, version, "blocked", cause))
        else:
            records.append(_load_one(registry, dist, version, point))
    return records


def warn_of_failures(records: list[PluginRecord]) -> None:
    """Name every plugin that did not load, in one warning.

    Warns KernelWeaveWarning if there is any.
    """
    bad = [row for row in records if row.status not in ("loaded", "blocked")]
    if bad:
        details = "; ".join(f"{row.name} ({row.distribution}): {row.cause}" for row in bad)
        warnings.warn(f"plugins not loaded: {details}", KernelWeaveWarning, stacklevel=4)

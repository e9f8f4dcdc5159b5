"""The engine of ``kernelweave tables``: runs any plugin's plan, keeps its cells, writes the page.

It knows no paper: the plans of the tessellated-kernel papers are in ``workbench.reproductions``.
"""

from __future__ import annotations

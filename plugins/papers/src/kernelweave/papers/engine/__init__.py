"""The engine of ``kernelweave tables``: runs plans, keeps their cells, writes the pages.

It knows no paper.
"""

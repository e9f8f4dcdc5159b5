"""The engine of ``kernelweave tables``: runs plans, keeps their cells, writes the page.

It knows no paper.
"""

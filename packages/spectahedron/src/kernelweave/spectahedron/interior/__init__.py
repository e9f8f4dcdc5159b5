"""An interior point for the whole saddle: dual variables and positive matrix together."""

from .method import InteriorPath, InteriorPointSearch, required_bytes, work

__all__ = ["InteriorPath", "InteriorPointSearch", "required_bytes", "work"]

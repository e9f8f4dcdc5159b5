"""An interior point for the whole saddle: dual variables and positive matrix together."""

from .method import InteriorPointSearch, InteriorState, required_bytes, work

__all__ = ["InteriorPointSearch", "InteriorState", "required_bytes", "work"]

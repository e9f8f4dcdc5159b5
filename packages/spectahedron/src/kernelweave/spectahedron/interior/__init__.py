"""An interior point for the whole saddle: dual variables and positive matrix together."""

from .method import InteriorPoint, InteriorState, required_bytes, work

__all__ = ["InteriorPoint", "InteriorState", "required_bytes", "work"]

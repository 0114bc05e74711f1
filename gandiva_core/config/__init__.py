"""Typed settings: every key once, with unit, default and reason."""

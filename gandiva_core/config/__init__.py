"""Typed settings: every key once, with unit, default and reason. Pure: values come in as mappings."""

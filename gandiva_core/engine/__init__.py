"""The only owner of mutable state: an event in; decisions, refusals and effects out (DESIGN §3)."""

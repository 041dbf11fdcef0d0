"""An operator's decisions about a state; each appends one entry with its reason.

Nothing is edited in place.

See docs/reference/state.md.
"""

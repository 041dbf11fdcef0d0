"""An operator's decisions about a state: each appends one entry with its reason, nothing is edited in place (docs/reference/state.md, Decisions by hand)."""

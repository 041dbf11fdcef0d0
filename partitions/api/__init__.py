"""HTTP APIs: what is asked of one, and what its answers say, without a network (docs/reference/apis.md)."""

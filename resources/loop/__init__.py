"""The loop, once for all kinds: plan, intent, write, verify, commit, and recovery (docs/explanation/protocol.md)."""

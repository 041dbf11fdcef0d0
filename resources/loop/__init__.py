"""The load loop shared by all kinds: plan, intent, write, verify, commit, and recovery.

See docs/explanation/protocol.md.
"""

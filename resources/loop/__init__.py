"""The loop, once for all kinds: plan, intent, write, verify, commit, and recovery (spec 05, The commit protocol)."""

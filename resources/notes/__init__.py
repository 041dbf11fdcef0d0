"""Notes beside a log: how the last run ended, and what it saw. Nothing is decided by them."""

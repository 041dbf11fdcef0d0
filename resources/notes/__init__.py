"""Notes beside a log: how the last run ended, and what it saw. No decision depends on them."""

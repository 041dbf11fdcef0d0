"""Window watermarks: time windows of units, their partitions, and the ledger of what is missing."""

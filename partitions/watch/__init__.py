"""Which dataflow ``strandline watch`` runs when, and what it says (docs/watch.md). Values and functions of values: no clock, no thread."""

"""Wake ``strandline watch``, and poll sources for it. Nothing here knows what a source is."""

"""What wakes ``strandline watch``, and what looks at sources for it. Nothing here knows what is looked at."""

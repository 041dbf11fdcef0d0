"""New projects and first dataflows: the files that ``strandline init`` writes."""

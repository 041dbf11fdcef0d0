"""New projects and first dataflows: the files that ``strandline init`` writes (docs/how-to/own-project.md)."""

"""Sources of dataflows: one package or module per source type."""

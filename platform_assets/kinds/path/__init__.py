"""Path watermarks: files in the order of their names, late files, quarantine."""

"""Path watermarks: files, in the order of their paths."""

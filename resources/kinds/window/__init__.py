"""Window watermarks: windows of time by units."""

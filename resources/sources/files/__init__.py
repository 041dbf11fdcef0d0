"""Files as a source: listing, formats, exact reads."""

"""Stream watermarks: one event-time watermark a split."""

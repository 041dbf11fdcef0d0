"""Stream watermarks: one event-time watermark for each split."""

"""The watermark log and what stands on it: blobs below, the numbered log, provider and manager above (docs/explanation/watermarks.md)."""

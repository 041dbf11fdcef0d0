"""What stops a run before it reads: a changed definition, key, table, watermark or schema."""

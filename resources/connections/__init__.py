"""Where things are and how they are reached: places of files, databases, APIs, catalogs, webhooks. Opens nothing."""

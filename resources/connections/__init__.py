"""Addresses and credentials of places, databases, APIs, catalogs and webhooks. Opens nothing."""

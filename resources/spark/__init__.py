"""Spark: sessions, settings, its processes and servers, and what Connect lacks."""

"""Spark: sessions, settings, processes and servers, and substitutes for what Connect lacks."""

"""Measurements, each a ratio against a baseline of the same run.

``make bench`` prints tables and writes benchmarks/out/*.json. Belongs here: code that times something.
Nothing in tests/ does.
"""

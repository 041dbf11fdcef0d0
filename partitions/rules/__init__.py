"""Rules of rows: what a row must meet, and what becomes of rows that do not.

See docs/how-to/rules-for-rows.md.
"""

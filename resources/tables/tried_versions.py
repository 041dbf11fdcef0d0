"""The minor versions of deltalake and pyiceberg that our own commits were tested with.

Our commits build on more than these libraries promise. A test fails on another version, and names the
modules to check.
"""

DELTALAKE = "1.6"
"""Its log entries are put without a retry, and its paths and statistics are worked around where they differ from Delta's (``own_limits``)."""
PYICEBERG = "0.12"
"""Its manifests, lists and column statistics are written by functions that are no public API."""

"""The minor versions of deltalake and pyiceberg that our own commits were tested with.

Our commits build on more than these libraries promise. A test fails on another version, and names the
modules to check.
"""

DELTALAKE = "1.6"
"""We write its log entries without a retry, and work around paths and statistics that differ from Delta's (``own_limits``)."""
PYICEBERG = "0.12"
"""We write manifests, manifest lists and column statistics with functions that are no public API."""

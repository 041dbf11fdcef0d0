"""The ledger as files for auditors: CSV with stable columns, and one HTML page."""

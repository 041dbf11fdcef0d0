"""The contract of every table format, which loads, decisions and readers use."""

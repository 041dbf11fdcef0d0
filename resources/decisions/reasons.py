"""Reasons for which decisions handle files; the lists of ingested files store them."""

from resources.watermarks.file_ranges import GOES, UNPROCESSED, UNPROCESSED_WITHOUT_ROWS, WENT

IN_TABLE = "in the table when it was adopted"
SET = "passed over by state set"
DELETED = "without a row in the table when it was adopted"
OTHER_ROOT = "at or below the watermark when another root was accepted"

LOADED_REASONS = (IN_TABLE, DELETED, OTHER_ROOT, GOES)
"""Reasons of files that a decision has taken as loaded, or whose rows the next loads delete."""

SKIPPED_REASONS = (SET,)
"""Reasons of files that a decision has skipped."""

DECISION_REASONS = (IN_TABLE, DELETED, SET, OTHER_ROOT, UNPROCESSED, UNPROCESSED_WITHOUT_ROWS, GOES, WENT)
"""All reasons for which decisions handle files: such files are in no quarantine."""

WITH_ROWS = (None, IN_TABLE)
"""Reasons of files whose rows a commit has put into the table; None: a run has loaded them."""

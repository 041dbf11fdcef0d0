"""Reasons for which decisions handle files; the lists of ingested files store them."""

from resources.watermarks.file_ranges import UNPROCESSED

IN_TABLE = "in the table when it was adopted"
SET = "passed over by state set"
IMPORTED = "ingested before the import"
OTHER_ROOT = "at or below the watermark when another root was accepted"

LOADED_REASONS = (IN_TABLE, IMPORTED, OTHER_ROOT)
"""Reasons of files that a decision has taken as loaded."""

PASSED_OVER_REASONS = (SET,)
"""Reasons of files that a decision has passed over."""

DECISION_REASONS = (IN_TABLE, SET, IMPORTED, OTHER_ROOT, UNPROCESSED)
"""All of them: such files are in no quarantine."""

"""The watermark log and its users: blobs below, the numbered log, provider and manager above.

See docs/explanation/watermarks.md.
"""

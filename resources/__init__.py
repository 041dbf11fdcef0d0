"""All effects: Spark, listings, the watermark log, readers, writers, IO managers.

This layer acts on plans. Policy is in ``partitions``, presentation in ``platform_assets``.
"""

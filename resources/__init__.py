"""Everything that touches the world: Spark, listings, the watermark log, readers, writers, IO managers.

Belongs here: acting on what a plan says. Does not belong here: policy (``partitions`` decides) and presentation
(``platform_assets`` shows).
"""

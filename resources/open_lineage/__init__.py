"""Run events for a lineage catalog, by the OpenLineage standard (docs/how-to/lineage.md).

Belongs here: names and facets of datasets, columns that come from columns, and sending. An event never fails
a run, and delays it by a short time-out at most. Does not belong here: what a run does.
"""

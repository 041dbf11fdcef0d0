"""Alerts about dataflows that need people (docs/how-to/alerts.md).

Belongs here: which facts make an alert (``conditions``), which messages a scan causes (``changes``), and
when a message may be posted (``delivery``). Does not belong here: queries of logs, ledgers and Dagster
(``resources.alerts``), and the format of a message.
"""

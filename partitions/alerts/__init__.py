"""What people are told of dataflows that need them (docs/how-to/alerts.md).

Belongs here: which facts make an alert (``conditions``), what a scan changes (``changes``), when a message may be posted
(``delivery``). Does not belong here: asking logs, ledgers and Dagster (``resources.alerts``), and the form of a message.
"""

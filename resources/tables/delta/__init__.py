"""Delta tables: ``txnAppId``/``txnVersion`` make writes idempotent (docs/explanation/protocol.md).

The commit's user metadata says which intent a commit belongs to.
"""

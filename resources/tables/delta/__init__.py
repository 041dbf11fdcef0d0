"""Delta tables: ``txnAppId``/``txnVersion`` make writes idempotent (docs/protocol.md).

The commit's user metadata says which intent a commit belongs to.
"""

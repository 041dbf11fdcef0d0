"""Delta tables: ``txnAppId``/``txnVersion`` make a write idempotent, the commit's user metadata says whose it is (docs/protocol.md)."""

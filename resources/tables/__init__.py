"""Tables that dataflows load into and read: one contract, one package a format."""

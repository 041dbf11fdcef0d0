"""What every format of tables does: the contract that loads, decisions and readers know."""

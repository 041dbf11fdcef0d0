"""What dataflows read: one package a type of source."""

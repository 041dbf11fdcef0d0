"""What becomes of the rows of a slice on their way to the table."""

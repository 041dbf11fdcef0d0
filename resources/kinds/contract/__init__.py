"""The parts of a kind of watermark, one contract per module; each kind has modules of the same names."""

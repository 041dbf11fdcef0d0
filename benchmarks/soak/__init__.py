"""Minutes of arrivals and disturbances, and then every row is counted: see :mod:`benchmarks.soak.soak`."""

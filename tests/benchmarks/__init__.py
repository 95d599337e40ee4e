"""What the server costs, as ratios to what does nothing: ``python -m tests.benchmarks --help``."""

"""Search: exact, by ScaNN, and how much an approximate index misses."""

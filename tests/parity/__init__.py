"""Numbers of other libraries, and what ours make of the same input."""

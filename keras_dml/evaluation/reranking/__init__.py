"""Orders what a search found by more than its scores."""

"""Re-ranks the results of a search by more than their scores."""

"""The page of a comparison: its tables and figures."""

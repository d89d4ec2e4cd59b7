"""Fair comparison: plans of many runs, their statistics and reports."""

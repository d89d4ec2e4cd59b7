"""Trains one run, and opens it again. Start reading in `fit.py`."""

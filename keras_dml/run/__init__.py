"""Trains one run, and opens it again. `fit.py` tells the story."""

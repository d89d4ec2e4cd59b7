"""Searches for settings: many short trainings, judged on validation classes."""

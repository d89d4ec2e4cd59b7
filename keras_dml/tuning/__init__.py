"""Tunes hyperparameters: many short trainings, judged on validation classes."""

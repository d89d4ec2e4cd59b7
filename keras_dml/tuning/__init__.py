"""Hyper-parameters: many short trainings, judged on validation classes."""

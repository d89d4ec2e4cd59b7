"""Writes the pages of the site that follow from the code."""

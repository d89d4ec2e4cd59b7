"""Embeds any number of images with a trained run."""

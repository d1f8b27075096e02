"""Runs and rows of the papers' tables, trained with several seeds at once."""

"""Rows of the papers' tables, trained with several seeds at once on one accelerator."""

"""Scores of translations and of trees."""

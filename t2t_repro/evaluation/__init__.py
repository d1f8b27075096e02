"""Scoring a model while it trains and afterwards."""

"""Trained systems in forms that other programs serve."""

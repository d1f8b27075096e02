"""Losses, schedules, checkpoints, and the training loop."""

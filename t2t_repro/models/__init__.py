"""Models that `--model` selects."""

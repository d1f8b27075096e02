"""Models: what `--model` names."""

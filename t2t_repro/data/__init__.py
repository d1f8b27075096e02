"""From text to shards, and from shards to batches of tokens."""

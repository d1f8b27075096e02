"""The tables of the two papers: published values beside our measurements."""

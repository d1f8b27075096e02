"""The tables of the two papers: published values beside what this package measured."""

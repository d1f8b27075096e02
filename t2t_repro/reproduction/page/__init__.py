"""The page of results, written from the result files."""

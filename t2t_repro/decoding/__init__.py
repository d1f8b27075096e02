"""Search for translations, and translate text with a trained system."""

"""Search for translations, and translating text with a trained system."""

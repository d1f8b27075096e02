"""The papers' tables, with what was measured here beside what they print."""

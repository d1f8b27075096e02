"""The score card of translations: all scores, and where the translations fail."""

from __future__ import annotations

from t2t_repro.metrics.card.card import ScoreCard, make_card
from t2t_repro.metrics.card.text import card_lines
from t2t_repro.metrics.card.words import WordCounts

__all__ = ["ScoreCard", "WordCounts", "card_lines", "make_card"]

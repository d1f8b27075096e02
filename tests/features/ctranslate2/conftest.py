"""A served system of a tiny model, as of the SavedModel's tests."""

from tests.features.saved_model.conftest import shared_searches, subword_system

__all__ = ["shared_searches", "subword_system"]

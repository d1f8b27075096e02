"""Export a trained system as a SavedModel: text in, translations and scores out."""

from t2t_repro.features import Feature

FEATURE = Feature(
    exports={"saved_model": "t2t_repro.features.saved_model.command_export_saved_model"}
)

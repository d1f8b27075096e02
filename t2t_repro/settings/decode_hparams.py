"""How a trained model is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from t2t_repro.settings.typed_settings import TypedSettings, setting


@dataclass(frozen=True, kw_only=True)
class DecodeHParams(TypedSettings):
    """How a trained model is searched; independent of how it was trained.

    The paper's section 6.1 gives beam 4, alpha 0.6 and length + 50. The batch is this
    project's: about 64 sentences of WMT length, whose keys and values for 4 beams stay
    below 1 GB for the base model.
    """

    flag: ClassVar[str] = "--decode_hparams"
    how_to_list: ClassVar[str] = "`t2t decode --help` explains every name."

    beam_size: int = setting("hypotheses kept alive", 4, unit="hypotheses", at_least=1)
    alpha: float = setting(
        "exponent of the length penalty ((5 + length) / 6)^alpha", 0.6, at_least=0
    )
    extra_length: int = setting(
        "a translation may be this much longer than its source",
        50,
        unit="tokens",
        at_least=0,
    )
    batch_size: int = setting(
        "sentences decoded together times the padded length of the longest",
        2048,
        unit="source tokens",
        at_least=1,
    )
    return_beams: bool = setting(
        "write all beam_size hypotheses of a sentence, best first", False
    )
    write_beam_scores: bool = setting(
        "write each hypothesis's score behind it, after a tab", False
    )

    prefer_unrepaired: bool = setting(
        "of a sentence's hypotheses those that need no repair come first; for problems "
        "that repair what the model writes",
        False,
    )

    @property
    def num_hypotheses(self) -> int:
        """How many hypotheses of a sentence the search has to find."""
        whole_beam = self.return_beams or self.prefer_unrepaired
        return self.beam_size if whole_beam else 1

    def ineffective_settings(self) -> dict[str, str]:
        """Returns setting -> reason for those that nothing reads beside the others."""
        if self.beam_size > 1:
            return {}
        reason = "beam_size=1 finds one hypothesis."
        return {
            name: reason
            for name in ("return_beams", "prefer_unrepaired")
            if getattr(self, name)
        }

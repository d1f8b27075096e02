"""Settings of the search for translations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from t2t_repro.settings.typed_settings import TypedSettings, setting

_SEARCHES = ("decode", "evaluate", "export", "attention")
_SCORES = (*_SEARCHES, "score")


@dataclass(frozen=True, kw_only=True)
class DecodeHParams(TypedSettings):
    """Settings of the search for translations, independent of the training.

    The paper's section 6.1 gives beam 4, alpha 0.6 and source length + 50. The batch
    size is this project's: about 64 sentences of WMT length, whose keys and values for
    4 beams stay below 1 GB for the base model.

    Every option names the commands that read it; the others refuse it.
    """

    flag: ClassVar[str] = "--decode_hparams"
    how_to_list: ClassVar[str] = "`t2t decode --help` explains every name."

    beam_size: int = setting(
        "hypotheses kept per sentence at every step",
        4,
        unit="hypotheses",
        at_least=1,
        read_by=_SEARCHES,
    )
    alpha: float = setting(
        "exponent of the length penalty ((5 + length) / 6)^alpha",
        0.6,
        at_least=0,
        read_by=_SCORES,
    )
    extra_length: int = setting(
        "tokens by which a translation may be longer than its source",
        50,
        unit="tokens",
        at_least=0,
        read_by=_SCORES,
    )
    batch_size: int = setting(
        "sentences per batch times the padded length of the longest",
        2048,
        unit="source tokens",
        at_least=1,
        read_by=("decode", "evaluate", "score", "export"),
    )
    return_beams: bool = setting(
        "write all beam_size hypotheses of a sentence, best first",
        False,
        read_by=("decode",),
    )
    write_beam_scores: bool = setting(
        "write the score after each hypothesis, separated by a tab",
        False,
        read_by=("decode",),
    )
    prefer_unrepaired: bool = setting(
        "rank hypotheses that need no repair above the others; for problems that "
        "repair the model's output",
        False,
        read_by=("decode", "evaluate", "attention"),
    )

    @property
    def num_hypotheses(self) -> int:
        """Number of hypotheses per sentence that the search must find."""
        whole_beam = self.return_beams or self.prefer_unrepaired
        return self.beam_size if whole_beam else 1

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that the others make irrelevant."""
        if self.beam_size > 1:
            return {}
        reason = "beam_size=1 finds one hypothesis."
        return {
            name: reason
            for name in ("return_beams", "prefer_unrepaired")
            if getattr(self, name)
        }

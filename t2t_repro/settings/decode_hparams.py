"""Settings of the search for translations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from t2t_repro.errors import UserError
from t2t_repro.settings.typed_settings import TypedSettings, setting

_SEARCHES = ("decode", "evaluate", "export", "attention", "train")
_SCORES = (*_SEARCHES, "score")
# A sample depends on the number of its sentence, which a served model does not know.
_SAMPLERS = ("decode", "evaluate", "attention", "train")


_TOKENS = {"unit": "tokens", "at_least": 0, "at_most": 10_000}


@dataclass(frozen=True, kw_only=True)
class DecodeHParams(TypedSettings):
    """Settings of the search for translations, independent of the training run.

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
        at_most=1000,
        read_by=_SEARCHES,
    )
    alpha: float = setting(
        "exponent of the length penalty ((5 + length) / 6)^alpha",
        0.6,
        at_least=0,
        at_most=5,
        read_by=_SCORES,
    )
    extra_length: int = setting(
        "tokens by which a translation may be longer than its source",
        50,
        read_by=_SCORES,
        **_TOKENS,
    )
    batch_size: int = setting(
        "sentences per batch times the padded length of the longest",
        2048,
        unit="source tokens",
        at_least=1,
        at_most=2**31 - 1,
        read_by=("decode", "evaluate", "score", "export", "train"),
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
        read_by=_SAMPLERS,
    )
    mbr_scale: float = setting(
        "choose the hypothesis of the beam that is most like the others in expectation "
        "(minimum Bayes risk), each weighted by exp(mbr_scale * score); 0 = choose the "
        "best score",
        0.0,
        at_least=0,
        read_by=_SAMPLERS,
    )
    mbr_consensus: bool = setting(
        "mbr_scale: write what hypotheses with more than half of these weights agree "
        "on, which need not be one of them; for trees",
        False,
        read_by=("decode", "evaluate", "train"),
    )

    min_length: int = setting(
        "least number of tokens of a translation before its end",
        0,
        read_by=_SEARCHES,
        **_TOKENS,
    )
    no_repeat_ngram_size: int = setting(
        "length of n-grams of tokens that a translation may contain only once; 0 = "
        "any may repeat",
        0,
        read_by=_SEARCHES,
        **_TOKENS,
    )
    coverage_penalty: float = setting(
        "factor beta of GNMT's penalty for source tokens without attention; 0 = none",
        0.0,
        at_least=0,
        read_by=_SEARCHES,
    )
    constrain: str = setting(
        "tree = write only trees over exactly the words of the source, for problems "
        "that declare their grammar; none = write anything",
        "none",
        choices=("none", "tree"),
        read_by=_SEARCHES,
    )
    word_cost: float = setting(
        "constrain=tree: expected cost of a word that has no leaf yet; keeps the beam "
        "from putting off leaves; about what a word costs in training trees; 0 = none",
        0.0,
        unit="nats",
        at_least=0,
        read_by=_SEARCHES,
    )
    sampling_method: str = setting(
        "argmax = the best translation; random = one drawn from the model's "
        "distribution, with beam_size=1",
        "argmax",
        choices=("argmax", "random"),
        read_by=_SAMPLERS,
    )
    sampling_temp: float = setting(
        "temperature: divisor of the logits before a token is drawn",
        1.0,
        above=0,
        read_by=_SAMPLERS,
    )
    sampling_keep_top_k: int = setting(
        "number of most probable tokens to draw from; -1 = all",
        -1,
        unit="tokens",
        at_least=-1,
        read_by=_SAMPLERS,
    )
    sampling_keep_top_p: float = setting(
        "draw from the fewest most probable tokens whose probabilities sum to this",
        1.0,
        above=0,
        at_most=1,
        read_by=_SAMPLERS,
    )
    sampling_seed: int = setting(
        "seed of the random numbers", 0, at_least=0, read_by=_SAMPLERS
    )

    @property
    def constrains(self) -> bool:
        """Whether some tokens may be forbidden."""
        return self.min_length > 0 or self.no_repeat_ngram_size > 0

    @property
    def follows_grammar(self) -> bool:
        """Whether only outputs of the problem's grammar are written."""
        return self.constrain != "none"

    @property
    def samples(self) -> bool:
        """Whether translations are drawn at random."""
        return self.sampling_method == "random"

    @property
    def num_hypotheses(self) -> int:
        """Number of hypotheses per sentence that the search must find."""
        # Inside a grammar, there is hardly anything to repair.
        prefers = self.prefer_unrepaired and not self.follows_grammar
        whole_beam = self.return_beams or prefers or self.mbr_scale > 0
        return self.beam_size if whole_beam else 1

    def ineffective_settings(self) -> dict[str, str]:
        """Return the reason by name for settings that the others make irrelevant."""
        idle = {}
        if self.beam_size == 1:
            reason = "beam_size=1 finds one hypothesis."
            names = (
                "return_beams",
                "prefer_unrepaired",
                "mbr_scale",
                "mbr_consensus",
                "coverage_penalty",
            )
            idle = {name: reason for name in names if getattr(self, name)}
        if self.prefer_unrepaired and self.follows_grammar:
            idle["prefer_unrepaired"] = (
                f"constrain={self.constrain} writes hardly anything that needs repair."
            )
        if self.word_cost and self.samples:
            idle["word_cost"] = "sampling compares no hypotheses."
        if not self.samples:
            reason = "sampling_method=argmax draws nothing at random."
            names = (n for n in self.names() if n.startswith("sampling_"))
            idle |= {name: reason for name in names if name != "sampling_method"}
        return idle

    def _check_consensus(self) -> None:
        if not self.mbr_consensus:
            return
        if not self.mbr_scale:
            raise UserError(
                "received mbr_consensus=true with mbr_scale=0, expected a scale above "
                "0: without it, no hypothesis has a weight."
            )
        for name, reason in {
            "return_beams": "a consensus is one output",
            "write_beam_scores": "a consensus has no score",
        }.items():
            if getattr(self, name):
                raise UserError(
                    f"received mbr_consensus=true with {name}=true, expected one of "
                    f"them: {reason}."
                )

    def check_together(self) -> None:
        self._check_consensus()
        if self.samples and self.beam_size > 1:
            raise UserError(
                f"received sampling_method=random with beam_size={self.beam_size}, "
                "expected beam_size=1: a sample is one translation."
            )
        if self.sampling_keep_top_k == 0:
            raise UserError(
                "sampling_keep_top_k: received 0, expected at least 1, or -1 for all."
            )

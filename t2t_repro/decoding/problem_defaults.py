"""Complete the settings of a search from the problem, and check them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from t2t_repro.data.problem import Problem
from t2t_repro.errors import UsageError
from t2t_repro.settings.decode_hparams import DecodeHParams


def own_defaults(
    problem: Problem, *, follows_grammar: bool = True
) -> Mapping[str, float | int | str]:
    """Return a problem's values of `DecodeHParams`, without the impossible ones.

    Args:
        problem: The problem. A `_rev` problem has the defaults of its base, but not
            its grammar.
        follows_grammar: Whether the engine can follow a grammar.
    """
    own = {**problem.decode_defaults}
    if not (follows_grammar and problem.has_grammar):
        own = {n: own[n] for n in own if n not in ("constrain", "word_cost")}
    return own


def with_problem_defaults(
    hparams: DecodeHParams,
    problem: Problem,
    max_input_length: int,
    *,
    follows_grammar: bool = True,
) -> DecodeHParams:
    """Use a problem's defaults for settings that the user did not give.

    A value that equals the general default counts as given only if `parse` read it:
    `DecodeHParams().parse("beam_size=4")`, not `DecodeHParams(beam_size=4)`.

    Args:
        hparams: Settings of the search.
        problem: The problem.
        max_input_length: Longest source that the model reads, in tokens with EOS.
        follows_grammar: Whether the engine can follow a grammar. If it cannot, the
            problem's `constrain` is left out.

    Raises:
        UsageError: If a given setting would have no effect or cannot work.
    """
    given = {*hparams.origins, *DecodeHParams().diff(hparams)}
    _check_fits_problem(hparams, problem, given)
    own = own_defaults(problem, follows_grammar=follows_grammar)
    # Settings that were completed before may have the problem's small batch.
    if "batch_size" in given and hparams.batch_size != own.get("batch_size"):
        _check_batch_size(hparams, max_input_length)
    found = hparams.replace(**{name: own[name] for name in own if name not in given})
    _check_repair(found, problem)
    if not found.word_cost or found.follows_grammar:
        return found
    if "word_cost" in given:
        raise UsageError(
            f"{hparams.argument()}: word_cost would have no effect: "
            f"constrain={found.constrain} counts no words."
        )
    # The problem's own, for a grammar that the user does not want.
    return found.replace(word_cost=0.0)


def _check_fits_problem(
    hparams: DecodeHParams, problem: Problem, given: Collection[str]
) -> None:
    """Refuse settings that the problem's outputs do not allow.

    Args:
        hparams: Settings of the search.
        problem: The problem.
        given: Names of the settings that the user gave.
    """
    if "prefer_unrepaired" in given and problem.writes_targets:
        raise UsageError(
            f"{hparams.argument()}: prefer_unrepaired would have no effect: outputs of "
            f"{problem.name} are never repaired."
        )
    if hparams.follows_grammar and not problem.has_grammar:
        raise UsageError(
            f"{hparams.argument()}: received constrain={hparams.constrain}, but "
            f"{problem.name} has no grammar: leave it out."
        )
    if hparams.mbr_consensus and not problem.has_consensus:
        raise UsageError(
            f"{hparams.argument()}: received mbr_consensus=true, but outputs of "
            f"{problem.name} cannot be combined: leave it out, so that mbr_scale "
            "chooses one of them."
        )


def _check_batch_size(hparams: DecodeHParams, max_input_length: int) -> None:
    if hparams.batch_size < max_input_length:
        raise UsageError(
            f"{hparams.argument()}: received batch_size={hparams.batch_size}, expected "
            f"at least {max_input_length} tokens, the longest source that the model "
            "reads."
        )


def _check_repair(hparams: DecodeHParams, problem: Problem) -> None:
    """Refuse a preference for outputs without repair if a grammar avoids repair."""
    asked = "prefer_unrepaired" in hparams.origins and hparams.prefer_unrepaired
    if asked and hparams.follows_grammar:
        raise UsageError(
            f"{hparams.argument()}: prefer_unrepaired would have no effect: with "
            f"constrain={hparams.constrain}, hardly any output of {problem.name} needs "
            "repair. Leave out one of the two."
        )

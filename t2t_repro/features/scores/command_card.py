"""The score card of `t2t evaluate`, as text, JSON or a page."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.cli.report import Scored, print_scores, scores_json
from t2t_repro.cli.streams import (
    STANDARD_STREAM,
    check_output,
    check_replaces_no_input,
    write_lines,
)
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.scores.card import ScoreCard, make_card
from t2t_repro.features.scores.card_page import card_page
from t2t_repro.features.scores.card_text import card_lines
from t2t_repro.features.scores.corpus_scores import MosesTokenizer, is_available
from t2t_repro.features.scores.word_bands import WordCounts
from t2t_repro.progress import Progress
from t2t_repro.text_tables import quantity

if TYPE_CHECKING:
    from t2t_repro.data.problem import Problem
    from t2t_repro.runs import TranslatingSystem

logger = logging.getLogger(__name__)

TEXT = "text"
FORMATS = (TEXT, "json")
FLAGS = ("card", "card_html")
_TITLE = ("problem", "data", "checkpoint", "hypothesis")  # values of the report


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the score card."""
    group = parser.add_argument_group(
        "score card",
        "All kinds of BLEU, also the papers' own (needs the package sacremoses: pip "
        "install sacremoses), chrF, TER, and where the translations fail.",
    )
    group.add_argument(
        "--card",
        nargs="?",
        choices=FORMATS,
        const=TEXT,
        help="print the score card: text instead of the scores (default), or json "
        'as "card" in the object',
    )
    group.add_argument(
        "--card_html", metavar="FILE", help="write the score card as an HTML page"
    )
    group.add_argument(
        "--card_language",
        metavar="CODE",
        help="target language for Moses's tokenizer, such as de (default: that of the "
        "problem; without one, the papers' kinds of BLEU are left out)",
    )


def is_wanted(args: argparse.Namespace) -> bool:
    """Return whether the user asked for a score card in any form."""
    return args.card is not None or args.card_html is not None


def check_flags(args: argparse.Namespace) -> None:
    """Refuse flags of the score card that cannot be followed, before any work.

    Raises:
        UsageError: If the page has no file, a language is given without a card, or
            there are several references.
        UserError: If the page cannot be written, or Moses does not know the language.
    """
    if args.card_html == STANDARD_STREAM:
        raise UsageError(
            f"received --card_html {STANDARD_STREAM}, expected a file: the scores go "
            "to standard output."
        )
    if args.card_html:
        check_output("--card_html", args.card_html)
        _check_card_file(args)
    if is_wanted(args) and len(args.reference or ()) > 1:
        raise UsageError(
            f"received {len(args.reference)} references and a score card, which has "
            "one: give one, or leave out --card and --card_html."
        )
    if args.card_language is None:
        return
    if not is_wanted(args):
        raise UsageError("--card_language needs --card or --card_html.")
    if is_available():
        MosesTokenizer(args.card_language)


def _check_card_file(args: argparse.Namespace) -> None:
    """Refuse a page in place of another file of the same command.

    Raises:
        UsageError: If the page would replace an input or the translations.
    """
    inputs = (args.hypothesis, args.source, *(args.reference or ()))
    check_replaces_no_input("--card_html", args.card_html, inputs)
    if args.decode_to_file and (
        Path(args.decode_to_file).resolve() == Path(args.card_html).resolve()
    ):
        raise UsageError(
            f"received --card_html and --decode_to_file {args.decode_to_file}, "
            "expected different files."
        )


def check_problem(args: argparse.Namespace, problem: Problem) -> None:
    """Refuse the card of a system that writes trees.

    Raises:
        UsageError: If a card is requested and the outputs are not translations.
    """
    if is_wanted(args) and not problem.writes_targets:
        raise UsageError(
            f"received a score card for problem {problem.name}, expected a problem of "
            "translation: leave out --card and --card_html."
        )


def show(args: argparse.Namespace, scored: Scored) -> None:
    """Print the score card as requested, and write its page.

    Words are counted in the training text of the system if it is known, otherwise in
    the references.

    Raises:
        UserError: If the card cannot be made, or the page cannot be written.
    """
    card = _make_card(args, scored)
    report, system = scored.report, scored.system
    named = (str(report[name]) for name in _TITLE if report.get(name))
    title = f"Score card: {', '.join(named)}"
    if args.card == TEXT:
        print(title, "", *card_lines(card), sep="\n")
    elif args.card:
        print(scores_json(report | {"card": card.to_json()}))
    else:
        print_scores(report)
    if args.card_html:
        language = None if system is None else system.problem.source_language
        page = card_page(card, title, language)
        write_lines(args.card_html, page.removesuffix("\n").split("\n"))


def _make_card(args: argparse.Namespace, scored: Scored) -> ScoreCard:
    language, words = args.card_language, None
    system, tokenizer = scored.system, scored.tokenizer
    if system is not None:
        language = language or system.problem.target_language
        words = _training_words(args.data_dir or system.data_dir, system, tokenizer)
    count = quantity(len(scored.hypotheses), "sentence")
    logger.info("making the score card of %s", count)
    texts = scored.hypotheses, scored.references, scored.sources
    return make_card(*texts, words, language, tokenizer=tokenizer)


def _training_words(
    data_dir: str | None, system: TranslatingSystem, tokenizer: str
) -> WordCounts | None:
    """Count the training words if the prepared data is present and intact."""
    from t2t_repro.data.prepared import PreparedData
    from t2t_repro.features.scores.word_bands import (
        count_training_words,
        training_pairs_to_count,
    )

    try:
        data = None if data_dir is None else PreparedData.find(data_dir, system.problem)
        if data is None:
            return None
        with Progress(training_pairs_to_count(data), "training pair") as progress:
            return count_training_words(data, progress.advance, tokenizer)
    except UserError as error:
        logger.warning("words are counted in the references: %s", error)
        return None

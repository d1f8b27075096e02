"""Sentences around a search: encoded, cut, joined, decoded and finished.

The search copies the sources.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.problem import Output
from t2t_repro.decoding import translator
from t2t_repro.decoding.beam import BeamSearchResult
from t2t_repro.decoding.hypothesis import Hypothesis
from t2t_repro.decoding.source_pieces import uniform_numbers
from t2t_repro.decoding.translator import Translator
from t2t_repro.errors import UserError
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import SymbolTokenizer
from tests.support.given_problem import problem_with
from tests.support.recorder import record

DIGITS, LETTERS = SymbolTokenizer(list("1234")), SymbolTokenizer(list("abcd"))
HPARAMS = DecodeHParams(beam_size=3, alpha=0.9, extra_length=5, batch_size=77)
LONGEST = 20


class Search:
    """A search that copies the source, with scores 0, -1, ... of its hypotheses."""

    def __init__(self, monkeypatch):
        self.inputs = []
        self.per_row = {"prefixes": [], "uniform": []}
        self.recorder = record(
            monkeypatch, translator, "search_translations", self._search
        )

    def _search(self, model, inputs, hparams, per_row, grammar):
        tf.py_function(lambda ids: self.inputs.append(ids.numpy()), [inputs], [])
        for name, tensor in per_row.items():
            tf.py_function(self._keeper(name), [tensor], [])
        ids = tf.stack([inputs] * hparams.beam_size, axis=1)
        scores = -tf.range(hparams.beam_size, dtype=tf.float32)
        shape = [tf.shape(inputs)[0], hparams.beam_size]
        return BeamSearchResult(ids, tf.broadcast_to(scores, shape))

    def _keeper(self, name):
        return lambda values: self.per_row[name].append(values.numpy())


@pytest.fixture
def search(monkeypatch):
    # In order, also if a test before has limited an operation to one thread.
    monkeypatch.setattr(translator, "num_parallel_batches", lambda: 1)
    return Search(monkeypatch)


def make_translator(hparams=HPARAMS, longest=LONGEST, **options):
    return Translator("model", DIGITS, LETTERS, hparams, longest, **options)


def copy_of(count):
    return DIGITS.encode("1 2 3 4")[:count]


def test_sources_are_encoded_as_inputs_and_outputs_decoded_as_targets(search):
    found = make_translator().translate(["1 2 3", "4", ""])
    assert [best.text for (best,) in found] == ["a b c", "d", ""]
    (batch,) = search.inputs
    assert batch.shape == (2, 4)
    np.testing.assert_array_equal(batch[0, :4], [*copy_of(3), 1])
    np.testing.assert_array_equal(batch[1, :3], [DIGITS.encode("4")[0], 1, 0])


@pytest.mark.parametrize(
    ("threads_per_operation", "gpus", "cores", "batches"),
    [
        (1, 0, 4, 4),
        (1, 0, 30, 8),
        (1, 1, 4, 1),
        (2, 0, 4, 1),
        (0, 0, 4, 1),  # TensorFlow's default, all cores
    ],
)
def test_each_core_has_a_batch_if_operations_have_one_thread(
    monkeypatch, threads_per_operation, gpus, cores, batches
):
    settings = tf.config.threading
    name = "get_intra_op_parallelism_threads"
    monkeypatch.setattr(settings, name, lambda: threads_per_operation)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind] * gpus)
    monkeypatch.setattr(translator, "available_cores", lambda: cores)
    assert translator.num_parallel_batches() == batches


def test_sources_are_normalized_and_outputs_postprocessed_with_the_given_source(search):
    """A blank source is an empty one."""
    seen = []

    def postprocess(source, written):
        seen.append((source, written))
        return Output(written.upper(), ("upper",))

    made = make_translator(
        problem=problem_with(
            normalize_source=lambda text: text.replace("!", "1"),
            postprocess=postprocess,
        )
    )
    found = made.translate(["! 2", " "])
    assert seen == [("! 2", "a b"), ("", "")]
    assert found[0] == [Hypothesis("A B", 0.0, ("upper",), (*copy_of(2), 1))]
    assert found[1] == [Hypothesis("", 0.0, ("upper",))]


def shortest_first(outputs):
    """Compare outputs so that a shorter one is more like any other."""
    return [[-len(one)] * len(outputs) for one in outputs]


@pytest.mark.parametrize(
    ("changes", "scores"),
    [
        ({"mbr_scale": 0.5}, [-2.0]),
        ({"mbr_scale": 0.5, "return_beams": True}, [-2.0, -1.0, 0.0]),
        # The only one without repairs still comes first.
        ({"mbr_scale": 0.5, "prefer_unrepaired": True}, [-1.0]),
    ],
)
def test_outputs_for_the_user_rank_by_their_similarity_on_request(
    search, changes, scores
):
    calls = []

    def postprocess(source, written):
        output = repair_all_but_the_second(calls)(source, written)
        return Output("x" * (9 - len(calls)), output.repairs)

    problem = problem_with(postprocess=postprocess, similarities=shortest_first)
    (found,) = make_translator(HPARAMS.replace(**changes), problem=problem).translate(
        ["1"]
    )
    assert [hypothesis.score for hypothesis in found] == scores


def joined(outputs, weights):
    """Combine outputs; the best score of the three is 0, the others are below."""
    heaviest = max(zip(weights, outputs, strict=True))[1]
    return f"{'+'.join(outputs)} {heaviest}"


@pytest.mark.parametrize(
    ("changes", "score"),
    [({}, -2.0), ({"prefer_unrepaired": True}, -1.0)],
)
def test_the_text_of_the_best_is_a_consensus_on_request(search, changes, score):
    calls = []
    texts = iter("pqr")

    def postprocess(source, written):
        output = repair_all_but_the_second(calls)(source, written)
        return Output(next(texts), output.repairs)

    def similarities(outputs):
        return [[number] * 3 for number in range(len(outputs))]  # the last is best

    problem = problem_with(
        postprocess=postprocess, similarities=similarities, consensus=joined
    )
    hparams = HPARAMS.replace(mbr_scale=0.5, mbr_consensus=True, **changes)
    ((found,),) = make_translator(hparams, problem=problem).translate(["1"])
    assert found.score == score
    order = "q+r+p" if changes else "r+q+p"
    assert found.text == f"{order} p"


def test_outputs_without_a_consensus_cannot_be_combined():
    with pytest.raises(UserError, match="cannot be combined: leave it out"):
        make_translator(HPARAMS.replace(mbr_scale=0.5, mbr_consensus=True))


def repair_all_but_the_second(calls):
    def postprocess(source, written):
        calls.append(written)
        return Output(written, () if len(calls) == 2 else ("cut",))

    return postprocess


@pytest.mark.parametrize(("prefers", "best"), [(True, -1.0), (False, 0.0)])
def test_output_without_repairs_comes_first_on_request(search, prefers, best):
    hparams = HPARAMS.replace(prefer_unrepaired=prefers)
    made = make_translator(
        hparams, problem=problem_with(postprocess=repair_all_but_the_second([]))
    )
    ((found,),) = made.translate(["1"])
    assert found.score == best


def test_a_long_source_is_translated_in_pieces_that_are_joined(search, caplog):
    made = make_translator(HPARAMS.replace(return_beams=True), longest=9)
    line = " ".join("1234123412")
    short, found, _ = made.translate(["1", line, " ".join("12341234")])  # which fits
    assert found[0].text == " ".join("abcdabcdab")
    assert [hypothesis.score for hypothesis in found] == [0.0, -2.0, -4.0]
    first, second = DIGITS.encode(line)[:8], DIGITS.encode(line)[8:]
    assert found[0].ids == (*first, 1, *second, 1)
    assert short[0].text == "a"
    expected = "line 2 has 10 tokens, more than 8: translated in 2 pieces"
    assert caplog.messages == [expected]


def test_a_short_source_of_a_model_that_reads_less_is_translated_at_once(
    search, caplog
):
    # At least 7 tokens before the end are translated at once.
    ((best,),) = make_translator(longest=4).translate([" ".join("1234123")])
    assert best.text == " ".join("abcdabc")
    assert [batch.shape for batch in search.inputs] == [(1, 8)]
    assert caplog.messages == []


def test_a_stream_numbers_lines_and_passes_progress_from_chunk_to_chunk(search, caplog):
    done = []
    lines = ["1", "2", " ".join("1234123412")]
    made = make_translator(longest=9)
    found = [*made.stream(lines, done.append, chunk_size=2)]
    assert [best.text for (best,) in found] == ["a", "b", " ".join("abcdabcdab")]
    assert sum(done) == 3
    assert "line 3 has 10 tokens" in caplog.text
    # The longest piece of all is in the second chunk.
    assert [batch.shape for batch in search.inputs] == [(2, 2), (2, 9)]


def test_the_longest_batches_come_first_and_have_at_most_the_tokens_asked_for(search):
    hparams = HPARAMS.replace(batch_size=26)
    sentences = ["1", " ".join("12341234123"), "2", "3", "4"]
    make_translator(hparams).translate(sentences)
    shapes = [batch.shape for batch in search.inputs]
    assert shapes == [(2, 12), (3, 2)]


def test_a_prefix_is_encoded_as_target_for_the_first_piece_of_its_sentence(search):
    lines = ["1", " ".join("1234123412"), "2", ""]
    made = make_translator(longest=9)
    made.translate(lines, prefixes=["a b", "c", "", "d"])
    # The first piece of the second line, its rest, "1" and "2".
    (rows,) = search.per_row["prefixes"]
    assert rows.tolist() == [[5, 0, 0], [0, 0, 0], [3, 4, 0], [0, 0, 0]]


def test_without_a_prefix_the_search_gets_no_rows(search):
    make_translator().translate(["1", "2"], prefixes=["", ""])
    assert search.per_row == {"prefixes": [], "uniform": []}


@pytest.mark.parametrize("first", [0, 7])
def test_random_numbers_are_those_of_the_line_in_the_whole_input(search, first):
    hparams = HPARAMS.replace(beam_size=1, sampling_method="random", sampling_seed=3)
    lines = ["1", "2", " ".join("1234123412")]
    made = make_translator(hparams, longest=9)
    [*made.stream(lines, chunk_size=2, first=first)]
    counts = [length + HPARAMS.extra_length for length in (2, 9)]
    cases = [[(0, 0), (1, 0)], [(2, 0), (2, 1)]]
    for numbers, count, places in zip(
        search.per_row["uniform"], counts, cases, strict=True
    ):
        expected = [uniform_numbers(3, first + n, part, count) for n, part in places]
        np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        (["a"], "received 2 sentences and 1 target prefix,"),
        (["a", "b", "c"], "expected one prefix per sentence"),
        (["a", "z"], "line 9: received the target prefix 'z', which has a word"),
        (
            ["a b c d a b", "a b c d a b"],
            "line 8: received a target prefix of 6 tokens, expected at most 6",
        ),
    ],
)
def test_a_prefix_that_cannot_be_followed_is_refused_at_once(search, prefixes, message):
    made = make_translator()
    if "at most" in message:
        prefixes = [f"{prefixes[0]} c", prefixes[1]]
        message = message.replace("of 6", "of 7")
    with pytest.raises(UserError, match=message):
        next(made.stream(["1", "2"], prefixes=prefixes, first=7, chunk_size=1))
    assert search.inputs == []


def test_one_sentence_in_place_of_a_list_is_refused(search):
    with pytest.raises(ValueError, match="must be a list of sentences"):
        make_translator().translate("1 2")
    with pytest.raises(ValueError, match="must be a list of strings"):
        make_translator().translate(["1 2", None])

"""A plan's numbers, computed by hand or read from real files."""

from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import catalogue
from t2t_repro.data.batch_plan import UpdateSize
from t2t_repro.data.manifest import Manifest, SplitCounts
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.planning.command_plan import in_units, plan_lines
from t2t_repro.features.planning.timing import Timing
from t2t_repro.features.planning.training_plan import plan_training
from t2t_repro.models.estimates import (
    activation_bytes,
    fitting_batch_size,
    training_memory,
)
from t2t_repro.runs.training_config import resolved_hparams
from t2t_repro.settings.train_settings import TrainSettings

# Two shapes of batches: 6 pairs of up to 4 tokens, 3 pairs of up to 8.
HPARAMS = "batch_size=24,max_length=8,min_length_bucket=4,length_bucket_step=2.0"


def settings(**changes) -> TrainSettings:
    given = {"output_dir": "", "hparams_set": "transformer_tiny", "hparams": HPARAMS}
    return TrainSettings(**(given | {"train_steps": 90} | changes))


def manifest(**changes) -> Manifest:
    # 7 pairs of 3 tokens, 5 of 8, 2 of 9, which are too long.
    lengths = [0, 0, 0, 7, 0, 0, 0, 0, 5, 2]
    train = SplitCounts(14, 14, {}, 50, 79, lengths, 0, ["a"])
    values = {
        "problem": "translate_ende_synthetic",
        "problem_version": 1,
        "settings": {},
        "sources": {},
        "splits": {"train": train},
        "tokenizers": {"inputs": "one", "targets": "one"},
        "vocab_sizes": {"inputs": 500, "targets": 500},
        "files": {},
        "versions": {},
    }
    return Manifest(**(values | changes))


def plan(name="translate_ende_synthetic", given=None, found=None, replicas=1, **more):
    catalogue.load()
    problem = catalogue.problem(name)
    preparation = requested_settings(problem, given or {})
    given = settings(**more)
    hparams = resolved_hparams(given)
    return plan_training(problem, given, hparams, preparation, found, replicas)


def test_copies_of_pairs_are_part_of_an_epoch_and_named():
    # 14 copies of 7 pairs: 8 were read and 1 was left out.
    counts = dataclasses.replace(
        manifest().splits["train"], pairs_read=8, dropped={"too_long": 1}
    )
    planned, plain = (
        plan(found=found) for found in (manifest(splits={"train": counts}), manifest())
    )
    assert (planned.epochs.copies_per_pair, plain.epochs.copies_per_pair) == (2, 1)
    assert planned.epochs.steps_per_epoch == plain.epochs.steps_per_epoch
    text, plain_text = ("\n".join(plan_lines(p, None)) for p in (planned, plain))
    assert "12 pairs (2 copies of each); longer pairs, left out: 2" in text
    assert "12 pairs; longer pairs, left out: 2" in plain_text


def test_batches_and_epochs_follow_from_the_lengths_of_the_data():
    planned = plan(found=manifest())
    shapes = [(b.length, b.rows, b.batches) for b in planned.batches]
    assert shapes == [(4, 6, 2), (8, 3, 2)]
    assert planned.epochs.steps_per_epoch == 4
    assert planned.epochs.epochs == 90 / 4
    assert (planned.epochs.pairs, planned.epochs.left_out) == (12, 2)
    # 61 of the 79 subwords on longer sides are in pairs that are short enough.
    assert planned.epochs.target_tokens_per_step == pytest.approx(79 * 61 / 79 / 4)
    weighted = sum(b.batches * b.flops for b in planned.batches) / 4
    assert planned.flops_per_step == pytest.approx(weighted)


def test_a_reversed_problem_counts_the_other_side_as_targets():
    sizes = {"inputs": 400, "targets": 500}
    names = {"inputs": "one", "targets": "two"}
    found = manifest(vocab_sizes=sizes, tokenizers=names)
    planned = plan("translate_ende_synthetic_rev", found=found)
    assert planned.vocab_sizes == (500, 400)
    assert not planned.shared_vocabulary
    assert planned.epochs.target_tokens_per_step == pytest.approx(50 * 61 / 79 / 4)


def test_a_vocabulary_of_symbols_has_three_more_entries():
    # Ten digits, padding, the end of a sequence, and unknown.
    planned = plan("algorithmic_reverse")
    assert planned.vocab_sizes == (13, 13)
    assert planned.shared_vocabulary


def test_two_vocabularies_have_three_matrices():
    shared = plan(given={"vocab_size": 500})
    separate = plan(given={"vocab_size": 500, "shared_vocabulary": False})
    width = 128
    assert shared.embedding_parameters == 500 * width
    assert separate.embedding_parameters == 3 * 500 * width
    assert separate.parameters == shared.parameters + 2 * 500 * width


def test_replicas_share_a_batch_and_not_the_memory():
    one, four = plan(), plan(replicas=4)
    assert [b.rows for b in four.batches] == [4 * b.rows for b in one.batches]
    assert four.memory == one.memory
    assert four.flops_per_step == 4 * one.flops_per_step


def test_the_disk_holds_the_kept_checkpoints_and_the_two_models():
    planned = plan(save_checkpoints_steps=30, keep_checkpoint_max=7)
    # Steps 30, 60, 90, and room to write one more.
    assert planned.disk.checkpoints == 4
    assert planned.disk.checkpoint == 12 * planned.parameters
    assert planned.disk.weights_only == 8 * planned.parameters
    few = plan(save_checkpoints_steps=1, keep_checkpoint_max=2, average_last=3)
    assert few.disk.checkpoints == 3 + 1
    without = plan(eval_sentences=0, average_last=0)
    assert without.disk.weights_only == 0


def test_weights_gradients_and_moments_have_four_bytes_each():
    planned = plan()
    size = 4 * planned.parameters
    memory = planned.memory
    assert (memory.weights, memory.gradients) == (size, size)
    assert (memory.optimizer, memory.fixed) == (2 * size, 4 * size)
    # A moving average is a third value per weight.
    planned = plan(hparams=f"{HPARAMS},ema_decay=0.99", average_last=0)
    assert planned.memory.optimizer == 3 * size
    assert planned.disk.checkpoint == 4 * size
    assert planned.disk.weights_only == 2 * size


def test_activations_are_the_tensors_that_the_rule_lists():
    hparams = catalogue.hparams("transformer_tiny").replace(
        hidden_size=6,
        filter_size=10,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        attention_key_channels=8,
        attention_value_channels=4,
        attention_dropout=0.1,
        relu_dropout=0.0,
    )
    length, vocabulary = 5, 9
    attention = 2 * 8 + 2 * 4 + 2 * length * 2 + 3 * 6
    network = 10 + 3 * 6
    elements = (attention + network) + (2 * attention + network)
    expected = 4 * length * (elements + 2 * 2 * 6 + 2 * vocabulary)
    assert activation_bytes(hparams, vocabulary, length) == expected
    additive = hparams.replace(attention_compatibility="additive")
    sums = 3 * length * 8
    assert activation_bytes(additive, vocabulary, length) == (
        expected + 4 * length * sums
    )
    parameters = hparams.replace(
        ffn_layer="parameter_attention",
        parameter_attention_heads=2,
        parameter_attention_key_channels=8,
        parameter_attention_value_channels=4,
    )
    more = 2 * (8 + 4 + 2 * 10 - 10)
    assert activation_bytes(parameters, vocabulary, length) == (
        expected + 4 * length * more
    )


def test_two_passes_have_twice_the_activations_and_four_times_the_logits():
    hparams = catalogue.hparams("transformer_tiny")
    one, two = (
        training_memory(h, 3000, 3000, rows=4, length=9)
        for h in (hparams, hparams.replace(rdrop_weight=5.0))
    )
    logits = 4 * 9 * 3000 * 4
    assert two.activations == 2 * (one.activations + 2 * logits)
    assert two.fixed == one.fixed


def test_the_batch_size_that_fits_leaves_room_for_the_sum_of_gradients():
    hparams = catalogue.hparams("transformer_tiny")
    several = hparams.replace(update_tokens=25_000)
    sizes = (3000, 3000)
    gradients = training_memory(hparams, *sizes, rows=1, length=9).gradients
    expected = fitting_batch_size(hparams, *sizes, 200e6)
    assert fitting_batch_size(several, *sizes, 200e6 + gradients) == expected


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({"model": "mine"}, "translate_ende_synthetic", "expected transformer"),
        ({}, "parsing_ptb_initials", "prepare it with `t2t datagen`"),
    ],
)
def test_what_cannot_be_counted_is_refused(changes, name, reason):
    with pytest.raises(UserError, match=reason):
        plan(name, **changes)


def test_data_without_a_pair_that_is_short_enough_is_refused():
    train = dataclasses.replace(
        manifest().splits["train"], pairs_by_length=[0] * 9 + [2]
    )
    with pytest.raises(UserError, match="no training pair is short enough"):
        plan(found=manifest(splits={"train": train}))


def test_many_shapes_are_a_list_and_few_are_a_table():
    few = plan_lines(plan(found=manifest()))
    assert " ".join(few[-3].split()) == "LENGTH PAIRS TOKENS PER SIDE BATCHES PER EPOCH"
    assert few[-1].split() == ["8", "3", "24", "2"]
    changes = "batch_size=64,max_length=64,min_length_bucket=4,length_bucket_step=1.1"
    many = plan_lines(plan(hparams=changes))
    assert any("batch shapes" in line and "16 x 4" in line for line in many)


def test_numbers_have_three_digits_and_a_prefix():
    numbers = (0, 999, 999_600, 12_340, 250e9)
    texts = ["0 B", "999 B", "1.00 MB", "12.3 kB", "250 GB"]
    assert [in_units(number, "B") for number in numbers] == texts


@pytest.mark.parametrize(
    ("compilations", "first_use"),
    [(1, "0.5 min 30 s, once"), (5, "2.5 min 30 s, for each of 5 shapes")],
)
def test_the_time_of_first_updates_counts_each_of_them(compilations, first_use):
    timing = Timing(3, 8, 2, 1, compilations, 30.0, seconds_per_step=0.5)
    printed = " ".join("\n".join(plan_lines(plan(), timing)).split())
    assert f"first use {first_use}" in printed


@pytest.mark.parametrize(("replicas", "steps"), [(1, 4), (2, 2), (4, 1)])
def test_accumulated_updates_have_more_rows_and_keep_the_sum_of_gradients(
    replicas, steps
):
    alone = plan(found=manifest())
    whole = plan(
        found=manifest(), replicas=replicas, hparams=f"{HPARAMS},update_tokens=96"
    )
    assert [(b.length, b.rows) for b in whole.batches] == [(4, 24), (8, 12)]
    size = 4 * whole.parameters
    assert whole.memory.gradients == (size if steps == 1 else 2 * size)
    assert whole.memory.activations == alone.memory.activations
    assert whole.update == UpdateSize(replicas, 24, steps)
    printed = "\n".join(plan_lines(whole))
    assert f"{whole.update}; forward, backward" in printed


@pytest.mark.parametrize(("replicas", "tokens"), [(1, 7), (2, 15)])
def test_an_update_that_has_no_room_for_a_sentence_is_not_planned(replicas, tokens):
    hparams = f"{HPARAMS},update_tokens={tokens}"
    with pytest.raises(UsageError, match=f"received update_tokens={tokens}, which"):
        plan(replicas=replicas, hparams=hparams)
    enough = plan(replicas=replicas, hparams=f"{HPARAMS},update_tokens={tokens + 1}")
    assert enough.update.tokens == 8


def test_updates_of_one_pass_need_half_of_the_operations():
    def planned(**changes):
        changes["attention_dropout"] = 0.1
        hparams = ",".join(f"{name}={value}" for name, value in changes.items())
        return plan("translate_ende_synthetic", hparams=hparams, train_steps=100)

    one, two = planned(), planned(rdrop_weight=5)
    some = planned(rdrop_weight=5, rdrop_after_steps=40)
    assert two.flops_per_step == 2 * one.flops_per_step
    assert some.flops_per_step == pytest.approx(1.6 * one.flops_per_step)
    assert (two.single_pass_steps, some.single_pass_steps) == (0, 40)

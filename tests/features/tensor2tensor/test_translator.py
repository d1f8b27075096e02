"""Command lines of tensor2tensor become the lines of `t2t` that do the same."""

from __future__ import annotations

import shlex

import pytest

from t2t_repro.errors import UsageError
from t2t_repro.features.tensor2tensor.command_main import translate
from tests.support.command_lines import parsed

# Every value differs from all others, so that none can be exchanged.
LINES = """
t2t-trainer --problem=text_pairs --model=transformer --hparams_set=transformer_big
    --data_dir=d --output_dir=o --tmp_dir=t --t2t_usr_dir= --train_steps=11
    --random_seed=12 --keep_checkpoint_max=13 --log_step_count_steps=14
= t2t train --model transformer --data_dir d --output_dir o --tmp_dir t --train_steps
    11 --random_seed 12 --keep_checkpoint_max 13 --log_step_count_steps 14 --problem
    text_pairs --hparams_set transformer_big_v3

t2t-trainer --problem=text_pairs --local_eval_frequency=15
= t2t train --local_eval_frequency 15 --save_checkpoints_steps 15 --problem text_pairs
    --train_steps 250000

t2t-trainer --problem=text_pairs --local_eval_frequency=15 --save_checkpoints_secs=16
= t2t train --local_eval_frequency 15 --save_checkpoints_secs 16 --problem text_pairs
    --train_steps 250000

t2t-trainer --problems=translate_ende_wmt32k_rev
    --hparams_set=transformer_base_single_gpu --hparams=batch_size=2048,
= t2t train --problem translate_ende_wmt14_rev --vocab_size 32768 --train_steps 250000
    --hparams_set transformer_base_v3 --hparams
    'batch_size=2048,learning_rate_schedule=constant*linear_warmup*rsqrt_decay,learning_rate_constant=0.1,learning_rate_warmup_steps=16000'

t2t-trainer --problem=text_pairs --train_steps=9 --decode_hparams=beam_size=7
    --decode_alpha=0.7
= t2t train --train_steps 9 --problem text_pairs --decode_hparams alpha=0.7,beam_size=7

t2t-trainer --registry_help --model=transformer
= t2t list

t2t-trainer --schedule=evaluate --output_dir=o --data_dir=d
    --decode_hparams=beam_size=7
= t2t evaluate --output_dir o --data_dir d --decode_hparams beam_size=7 --split dev

t2t-trainer --train_steps=0 --output_dir=o --decode_beam_size=3 --decode_alpha=0.5
    --decode_from_file=in.txt --model=transformer --problems=p --hparams_set=s
= t2t decode --output_dir o --decode_from_file in.txt --decode_hparams
    beam_size=3,alpha=0.5 --decode_to_file
    in.txt.transformer.s.p.beam3.alpha0.5.decodes

t2t-trainer --problem=text_pairs --train_steps=9 --decode_from_file=in.txt
= t2t train --train_steps 9 --problem text_pairs

t2t-trainer --problem=text_pairs --decode_from_file=in.txt
= t2t train --problem text_pairs --train_steps 250000

t2t-datagen --problem=translate_enfr_wmt32k --data_dir=d --tmp_dir=t --num_shards=21
    --random_seed=22
= t2t datagen --data_dir d --tmp_dir t --num_shards 21 --shuffle_seed 22 --problem
    translate_enfr_wmt14 --vocab_size 32768

t2t-datagen --only_list
= t2t list problems

t2t-decoder --output_dir=o --checkpoint_path=c --decode_from_file=in.txt
    --decode_to_file=out.txt --decode_hparams=beam_size=7,alpha=0.7,batch_size=32
= t2t decode --output_dir o --checkpoint_path c --decode_from_file in.txt
    --decode_to_file out.txt --decode_hparams beam_size=7,alpha=0.7

t2t-decoder --output_dir=o --decode_from_file=in.txt
= t2t decode --output_dir o --decode_from_file in.txt --decode_to_file
    in.txt.beam4.alpha0.6.decodes

t2t-decoder --output_dir=~/o --decode_from_file=~/in --decode_to_file=~/out
= t2t decode --output_dir /ada/o --decode_from_file /ada/in --decode_to_file /ada/out

t2t-decoder --checkpoint_path=avg/model.ckpt-45 --decode_interactive=True
= t2t decode --checkpoint_path avg/model.ckpt-45 --output_dir avg

t2t-decoder --output_dir=o --data_dir=d --eval_use_test_set
= t2t evaluate --output_dir o --data_dir d --split test

t2t-decoder --output_dir=o --eval_use_test_set=false --decode_to_file=f
= t2t evaluate --output_dir o --decode_to_file f --split dev

t2t-exporter --output_dir=o --checkpoint_path=c --problem=translate_ende_wmt8k
    --decode_hparams=beam_size=5,write_beam_scores=True
= t2t export --output_dir o --checkpoint_path c --decode_hparams beam_size=5
    --export_dir o/export

t2t-decoder --output_dir=o --decode_from_file=in.txt
    --decode_hparams=beam_size=7,alpha=0.7,extra_length=8,return_beams=true,write_beam_scores=1
    --decode_to_file=f
= t2t decode --output_dir o --decode_from_file in.txt --decode_to_file f
    --decode_hparams
    beam_size=7,alpha=0.7,extra_length=8,return_beams=true,write_beam_scores=1

t2t-decoder --output_dir=o --decode_from_file=in.txt --decode_to_file=f
    --decode_hparams=beam_size=1
    --hparams=sampling_method=random,sampling_temp=0.6,sampling_keep_top_k=9
= t2t decode --output_dir o --decode_from_file in.txt --decode_to_file f
    --decode_hparams
    beam_size=1,sampling_method=random,sampling_temp=0.6,sampling_keep_top_k=9

t2t-decoder --output_dir=o --decode_interactive --decode_beam_size=1
    --hparams=num_heads=3,sampling_method=random
= t2t decode --output_dir o --decode_hparams beam_size=1,sampling_method=random

t2t-decoder --output_dir=o --decode_interactive
    '--decode_hparams=alpha=0.7, beam_size = 1' --hparams=sampling_method=random
= t2t decode --output_dir o --decode_hparams
    alpha=0.7,beam_size=1,sampling_method=random

t2t-decoder --output_dir=o --decode_interactive --decode_hparams=alpha=0.7
    --hparams=sampling_method=random
= t2t decode --output_dir o --decode_hparams alpha=0.7

t2t-decoder --output_dir=o --checkpoint_path=c --score_file=p.tsv --data_dir=d
    --decode_to_file=s.txt --decode_hparams=alpha=0.7,beam_size=7
    --decode_from_file=in.txt
= t2t score --output_dir o --checkpoint_path c --scores_to_file s.txt
    --decode_hparams alpha=0.7 --source s.txt.inputs --target s.txt.targets

t2t-decoder --checkpoint_path=r/model.ckpt-45 --score_file=p.tsv
= t2t score --checkpoint_path r/model.ckpt-45 --output_dir r --source p.tsv.inputs
    --target p.tsv.targets

t2t-exporter --output_dir=o --score_file=p.tsv --decode_hparams=beam_size=1
    --hparams=sampling_method=random
= t2t export --output_dir o --decode_hparams beam_size=1 --export_dir o/export

t2t-trainer --problem=text_pairs --output_dir=o
    --hparams=sampling_method=random,sampling_temp=0.6,num_heads=3
= t2t train --output_dir o --problem text_pairs --train_steps 250000 --hparams
    num_heads=3

t2t-avg-all --model_dir m --output_dir a --n 9
= t2t average --output_dir m --last 9

t2t-avg-all --model_dir=m
= t2t average --output_dir m --last 8
"""
PAIRS = [
    tuple(" ".join(part.split()) for part in block.split("\n= "))
    for block in LINES.strip().split("\n\n")
]


def translated(line):
    command, *arguments = shlex.split(line)
    return translate(command, arguments)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_line_becomes_the_line_that_does_the_same(old, new, monkeypatch):
    monkeypatch.setenv("HOME", "/ada")
    assert translated(old).line == new
    _, command, *arguments = shlex.split(new)
    assert parsed(command, arguments)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            "t2t-trainer --worker_gpu=8 --gpu_order=0,1",
            "--worker_gpu=8, --gpu_order=0,1: not needed: training uses all visible "
            "GPUs; CUDA_VISIBLE_DEVICES hides some",
        ),
        (
            "t2t-trainer --cloud_tpu --nouse_tpu",
            "--cloud_tpu=true: TPUs are not supported; the command runs on this "
            "machine's GPUs or CPU",
        ),
        (
            "t2t-decoder --output_dir=o --decode_interactive --model=m --data_dir=d",
            "--model=m, --data_dir=d: not needed: the run in --output_dir remembers it",
        ),
        (
            "t2t-decoder --output_dir=o --decode_interactive --train_steps=3",
            "--train_steps=3: not needed: `t2t decode` does not use it",
        ),
        (
            "t2t-trainer --hparams=learning_rate=0.2 --problem=text_pairs",
            "--hparams learning_rate=0.2: tensor2tensor 1.5 and later reads it in "
            "transformer_base_v1 and _v2 alone; there, and in earlier versions, "
            "learning_rate_constant is 10 times its value",
        ),
        (
            "t2t-trainer --hparams_set=transformer_tiny",
            "--hparams_set=transformer_tiny: tensor2tensor's values; the set "
            "transformer_tiny here has others",
        ),
        (
            "t2t-decoder --output_dir=o --decode_interactive --decode_beam_size=1 "
            "--hparams=num_heads=3,sampling_temp=0.6,sampling_method=random",
            "--hparams sampling_temp=0.6,sampling_method=random: now part of "
            "--decode_hparams",
        ),
        (
            "t2t-decoder --output_dir=o --decode_interactive "
            "--hparams=num_heads=3,sampling_method=random",
            "--hparams=num_heads=3: not needed: the run in --output_dir remembers it",
        ),
        (
            "t2t-decoder --output_dir=o --decode_interactive "
            "--hparams=sampling_method=random",
            "--hparams sampling_method=random: not needed: with more than one beam, "
            "tensor2tensor ignores it",
        ),
        (
            "t2t-decoder --output_dir=o --score_file=p.tsv --decode_from_file=in.txt",
            "--decode_from_file=in.txt: not needed: `t2t score` does not use it",
        ),
        (
            "t2t-decoder --output_dir=o --score_file=p.tsv --decode_to_file=s",
            "--score_file=p.tsv: its columns are in s.inputs and s.targets, as `cut "
            "-f1` and `cut -f2` write them",
        ),
    ],
)
def test_a_flag_without_meaning_is_answered_by_name(line, answer):
    assert answer in translated(line).lines()


@pytest.mark.parametrize(
    "line", ["t2t-trainer --hparams", "t2t-decoder --decode_hparams"]
)
def test_a_setting_without_a_value_is_left_to_be_reported(line):
    flags = f"{line}=hidden,beam_size=1 --output_dir=o --decode_interactive"
    assert "hidden" in translated(flags).line.replace(",", " ").split()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("t2t-trainer --worker_gpus=8", "unknown flag '--worker_gpus'.\nDid you mean"),
        ("t2t-trainer --worker_replicas=2", "--worker_replicas=2: TF_CONFIG or `t2t"),
        ("t2t-trainer --hparams_range=x", "--hparams_range=x: there is no tuner"),
        ("t2t-trainer --schedule=continuous_decode", "expected one of train, "),
        (
            "t2t-trainer --hparams_set=transformer_relative",
            "no set here has its values; there is no relative attention",
        ),
        (
            "t2t-trainer --hparams=weight_decay=0.1",
            "--hparams: weight_decay=0.1 is not possible: there is no weight decay",
        ),
        (
            "t2t-trainer --problem=image_mnist --model=shake_shake",
            "--problem=image_mnist: it is not here; only translation, parsing",
        ),
        (
            "t2t-datagen --problem=translate_encs_wmt32k",
            "it is not here; give your text: `t2t datagen --problem text_pairs",
        ),
        ("t2t-datagen --problem=translate_*", "expected one problem"),
        ("t2t-datagen --problem=text_pairs --max_cases=9", "--max_cases=9: all pairs"),
        (
            "t2t-decoder --output_dir=o --decode_hparams=num_samples=3",
            "num_samples=3 is not possible: all lines are translated",
        ),
        (
            "t2t-decoder --output_dir=o --decode_hparams=force_decode_length=True",
            "min_length=N makes it at least N tokens long",
        ),
    ],
)
def test_a_flag_that_asks_for_something_else_is_refused(line, message):
    with pytest.raises(UsageError) as caught:
        translated(line)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "t2t-trainer --worker_replicas=1 --ps_replicas=0 --worker_id=0",
        "t2t-trainer --hparams_range= --noautotune --cloud_mlengine=false",
        "t2t-trainer --hparams=weight_decay=0.0,optimizer=Adam",
        "t2t-decoder --output_dir=o --decode_hparams=num_samples=-1 --decode_shards=1",
    ],
)
def test_a_refused_flag_may_have_tensor2tensors_default(line):
    assert "hparams" not in translated(line).flags


def test_a_problem_of_the_users_package_keeps_its_name(tmp_path):
    package = tmp_path / "own_translation"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_repro.registry import problems\n"
        'problems.declare("translate_own", module=__name__, summary="")\n'
    )
    line = f"t2t-trainer --t2t_usr_dir={package} --problem=translate_own_rev"
    from t2t_repro import registry

    with registry.problems.isolated():
        assert translated(line).flags["problem"] == "translate_own_rev"

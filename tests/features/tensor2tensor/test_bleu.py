"""`t2t-bleu` prints tensor2tensor's numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from math import exp, log

import pytest

from t2t_repro.features.tensor2tensor.command_main import run

HYPOTHESES = [
    "The cat sat on the Mat, didn't it?",
    "It costs 1,000.50 Dollars (more or less) today.",
    "A man is riding a brown horse on the beach.",
]
REFERENCES = [
    "The cat sat on the mat, did it not?",
    "It costs 1,000.50 dollars (more or less) today!",
    "A man rides a brown horse at the beach.",
]


def tokens(text):
    """Tokenize as tensor2tensor's bleu_hook.bleu_tokenize does, for ASCII text."""
    punctuation = r"[!\"#%&'()*,\-./:;?@\[\\\]_{}]"
    text = re.sub(rf"([^\d])({punctuation})", r"\1 \2 ", text)
    text = re.sub(rf"({punctuation})([^\d])", r" \1 \2", text)
    return re.sub(r"([$+<=>^`|~])", r" \1 ", text).split()


def bleu(hypotheses, references):
    """Compute BLEU of up to 4-grams; no count is zero in these sentences."""
    logarithms = []
    for order in (1, 2, 3, 4):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            grams = [
                Counter(tuple(t[i : i + order]) for i in range(len(t) - order + 1))
                for t in (tokens(hypothesis), tokens(reference))
            ]
            matches += (grams[0] & grams[1]).total()
            total += grams[0].total()
        logarithms.append(log(matches / total))
    written = sum(len(tokens(text)) for text in hypotheses)
    expected = sum(len(tokens(text)) for text in references)
    brevity = min(0.0, 1 - expected / written)
    return 100 * exp(sum(logarithms) / 4 + brevity)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "t").mkdir()
    write(tmp_path / "hyp", HYPOTHESES)
    write(tmp_path / "ref", REFERENCES)
    return tmp_path


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


def test_both_lines_have_tensor2tensors_format_and_numbers(files, capsys):
    cased = bleu(HYPOTHESES, REFERENCES)
    uncased = bleu(*([text.lower() for text in t] for t in (HYPOTHESES, REFERENCES)))
    assert uncased > cased
    flags = [f"--translation={files}/hyp", f"--reference={files}/ref"]
    assert run("t2t-bleu", flags) == 0
    printed = capsys.readouterr()
    assert printed.out == f"BLEU_uncased = {uncased:6.2f}\nBLEU_cased = {cased:6.2f}\n"
    assert printed.err == (
        f"sacrebleu {files}/ref --input {files}/hyp --tokenize intl --lowercase"
        "  # t2t-bleu: BLEU_uncased; BLEU_cased without --lowercase\n"
    )


def test_the_printed_command_of_sacrebleu_gives_the_same_number(files, capsys):
    flags = [f"--translation={files}/hyp", f"--reference={files}/ref"]
    run("t2t-bleu", [*flags, "--bleu_variant=uncased"])
    printed = capsys.readouterr()
    command = printed.err.partition("  #")[0].split()
    short = ["--score-only", "--width", "2"]
    ended = subprocess.run(
        [sys.executable, "-m", *command, *short], capture_output=True, text=True
    )
    assert printed.out == f"BLEU_uncased = {float(ended.stdout):6.2f}\n"


def test_a_file_of_a_folder_that_is_a_line_short_is_named(files, capsys):
    folder = files / "t"
    write(folder / "p-1", HYPOTHESES)
    write(folder / "p-2", HYPOTHESES[1:])
    flags = [f"--translations_dir={folder}", f"--reference={files}/ref"]
    assert run("t2t-bleu", flags) == 1
    printed = capsys.readouterr()
    assert f"translations in {folder}/p-2 and {len(REFERENCES)} ref" in printed.err
    assert printed.out == ""
    assert run("t2t-bleu", [f"--translation={folder}/p-2", flags[1]]) == 1


def test_a_folder_is_scored_in_the_order_of_steps_and_plotted(files, capsys):
    folder, events = files / "t", files / "events"
    (folder / "p-flags.txt").write_text("no translation")
    for step, lines in ((200, REFERENCES), (90, HYPOTHESES), (30, HYPOTHESES)):
        path = folder / f"p-{step}"
        write(path, lines)
        os.utime(path, (1000 + step, 1000 + step))
    flags = [f"--translations_dir={folder}", f"--reference={files}/ref"]
    flags += [f"--event_dir={events}", "--tag_suffix=_b4", "--bleu_variant=cased"]
    assert run("t2t-bleu", [*flags, "--min_steps=90"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{folder}/p-90: BLEU_cased = {bleu(HYPOTHESES, REFERENCES):6.2f}",
        f"{folder}/p-200: BLEU_cased = 100.00",
    ]
    from tensorboard.backend.event_processing.event_file_loader import (
        LegacyEventFileLoader,
    )

    (file,) = events.iterdir()
    scalars = [
        (event.step, event.wall_time, value.tag, value.simple_value)
        for event in LegacyEventFileLoader(str(file)).Load()
        for value in event.summary.value
    ]
    assert scalars == [
        (90, 1090, "BLEU_cased_b4", pytest.approx(bleu(HYPOTHESES, REFERENCES))),
        (200, 1200, "BLEU_cased_b4", pytest.approx(100)),
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "expected either --translation or --translations_dir"),
        (["--translation=a", "--translations_dir=b"], "expected either"),
        (["--translation=a"], "received no --reference"),
        (["--translation=a", "--bleu_variant=x"], "expected one of both, uncased, cas"),
        (["--translation=nowhere", "--reference=nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_named(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("t2t-bleu", flags) in (1, 2)
    assert message in capsys.readouterr().err


def test_no_tensorflow_is_imported(files):
    program = (
        "import sys\n"
        "from t2t_repro.features.tensor2tensor.command_main import run\n"
        "code = run('t2t-bleu', sys.argv[1:])\n"
        "sys.exit(99 if 'tensorflow' in sys.modules else code)"
    )
    folder = files / "t"
    (files / "hyp").rename(folder / "p-1")
    flags = [f"--translations_dir={folder}", f"--reference={files}/ref"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *flags, f"--event_dir={files}/e"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr

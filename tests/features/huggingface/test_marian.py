"""MarianMT models equal the real ones; see tests/golden/make_marian.py."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import re
import shutil
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import catalogue
from t2t_repro.cli.main import main
from t2t_repro.constants import EOS_ID
from t2t_repro.errors import UserError
from t2t_repro.features.huggingface.marian_export import export_system
from t2t_repro.features.huggingface.marian_import import read_marian
from t2t_repro.features.huggingface.tensor_files import read_safetensors
from t2t_repro.features.huggingface.torch_files import read_torch_file
from t2t_repro.runs.imported_run import write_run
from t2t_repro.runs.system import System
from t2t_repro.settings.decode_hparams import DecodeHParams
from t2t_repro.text import load_tokenizer
from tests.support.eager import train_eagerly

ARCHIVE = Path(__file__).parents[2] / "golden" / "marian.zip"
KINDS = ("shared", "split", "untied")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("marian")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(found)
    catalogue.load()
    return found


@pytest.fixture(scope="module")
def expected(folder) -> dict:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def systems(folder) -> dict[str, System]:
    """Return the system of each kind, read from the folder of its run."""
    return {
        kind: write_run(read_marian(folder / kind), folder / f"run_{kind}")
        for kind in KINDS
    }


@pytest.fixture
def copy(folder, tmp_path) -> Path:
    shutil.copytree(folder / "shared", tmp_path / "model")
    return tmp_path / "model"


def change(path: Path, **values) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def theirs(tokenizer, ids: list[int]) -> list[int]:
    return [tokenizer.vocabulary.order[token] for token in [*ids, EOS_ID]]


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_encode_and_decode_as_marian_tokenizer_does(systems, expected, kind):
    system, known = systems[kind], expected[kind]
    source, target = system.source_tokenizer, system.target_tokenizer
    lines = expected["lines"]
    for line, inputs, targets in zip(
        lines, known["inputs"], known["targets"], strict=True
    ):
        assert theirs(source, source.encode(line)) == inputs, line
        assert theirs(target, target.encode(line)) == targets, line
    texts = [target.decode(target.encode(line)) for line in lines]
    assert texts == known["texts"]


@pytest.mark.parametrize("side", ["source_tokenizer", "target_tokenizer"])
def test_the_graph_and_the_file_have_the_same_tokenizer(
    systems, expected, side, tmp_path
):
    tokenizer = getattr(systems["split"], side)
    graph, lines = tokenizer.in_graph(), [*expected["lines"], "NUL \0 in a\0text"]
    ids = graph.encode(lines)
    assert ids.to_list() == [tokenizer.encode(line) for line in lines]
    texts = [text.decode() for text in graph.decode(ids.to_tensor()).numpy()]
    assert texts == [tokenizer.decode(row) for row in ids.to_list()]
    tokenizer.save(tmp_path / "own.marian")
    again = load_tokenizer(tmp_path / "own.marian")
    assert again.same_ids(tokenizer)
    assert again.encode(lines[4]) == tokenizer.encode(lines[4])


def test_words_begin_at_a_space(systems):
    tokenizer = systems["shared"].source_tokenizer
    ids = tokenizer.encode("the old dog")
    words = ["".join(tokenizer.pieces(ids[a:b])) for a, b in tokenizer.word_spans(ids)]
    assert words == ["▁the", "▁old", "▁dog"]
    begins = tokenizer.in_graph().begins_word(ids).numpy().tolist()
    assert begins == [token in tokenizer.word_starts() for token in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_equal_the_real_ones(systems, expected, kind):
    system, known = systems[kind], expected[kind]
    source, target = system.source_tokenizer, system.target_tokenizer
    order = target.vocabulary.order
    for text, output, rows in zip(
        expected["sources"], expected["target_texts"], known["logits"], strict=True
    ):
        batch = {
            "inputs": np.array([[*source.encode(text), EOS_ID]]),
            "targets": np.array([[*target.encode(output), EOS_ID]]),
        }
        found = system.model(batch).numpy()[0, : len(rows)]
        real = np.array(rows)[:, order]
        np.testing.assert_allclose(found, real, rtol=1e-5, atol=4e-5)


@pytest.mark.parametrize(
    ("kind", "beam_size"), [("shared", 1), ("split", 3), ("untied", 3)]
)
def test_translations_equal_the_real_ones(systems, expected, kind, beam_size):
    hparams = DecodeHParams(beam_size=beam_size, alpha=0.0)
    found = systems[kind].translate(expected["sources"], hparams)
    assert found == expected[kind][f"beam {beam_size}"]


@pytest.mark.parametrize("name", ["zip.bin", "legacy.bin"])
def test_every_file_of_torch_has_the_tensors_of_safetensors(folder, name):
    real = read_safetensors(folder / "shared" / "model.safetensors")
    found = read_torch_file(folder / name)
    assert set(real) <= set(found)
    for key, value in real.items():
        np.testing.assert_array_equal(found[key], value)


def test_a_model_in_a_file_of_torch_is_the_same_model(copy, folder, systems):
    shutil.move(folder / "zip.bin", copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    weights = read_marian(copy).weights
    for variable in systems["shared"].model.weights:
        np.testing.assert_array_equal(weights[variable.path], variable.numpy())
    shutil.copy(copy / "pytorch_model.bin", folder / "zip.bin")


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_folder_holds_the_tensors_and_tokenizers_it_came_from(
    systems, folder, kind, tmp_path
):
    exported = export_system(systems[kind], tmp_path / "exported")
    real = read_safetensors(folder / kind / "model.safetensors")
    found = read_safetensors(exported / "model.safetensors")
    for name, value in real.items():
        np.testing.assert_array_equal(found[name], value)
    # Here, the embedding of the target and the softmax are two matrices.
    extra = {"lm_head.weight"} if kind == "split" else set()
    assert set(found) - set(real) == extra
    for name in ("source.spm", "target.spm"):
        assert (exported / name).read_bytes() == (folder / kind / name).read_bytes()
    for name in ("vocab.json", *(("target_vocab.json",) * (kind == "split"))):
        texts = [(place / name).read_text() for place in (exported, folder / kind)]
        assert json.loads(texts[0]) == json.loads(texts[1])
    again = read_marian(exported)
    for path, value in read_marian(folder / kind).weights.items():
        np.testing.assert_array_equal(again.weights[path], value)


def test_commands_import_translate_and_export(folder, expected, tmp_path, capsys):
    run, export_dir = str(tmp_path / "run"), str(tmp_path / "exported")
    model = str(folder / "shared")
    assert main(["import", "--from", "huggingface", model, "--output_dir", run]) == 0
    assert "MarianMT, 2 + 1 layers of width 8, 92 entries" in capsys.readouterr().out
    sources = tmp_path / "sources.txt"
    sources.write_text("\n".join(expected["sources"]) + "\n", encoding="utf-8")
    arguments = ["--output_dir", run, "--decode_from_file", str(sources)]
    flags = ["--decode_hparams", "beam_size=3,alpha=0"]
    assert main(["decode", *arguments, *flags]) == 0
    assert capsys.readouterr().out.splitlines() == expected["shared"]["beam 3"]
    export = ["export", "--format", "huggingface", "--output_dir", run]
    assert main([*export, "--export_dir", export_dir]) == 0
    assert "MarianMTModel.from_pretrained" in capsys.readouterr().out


def changed(folder: Path, run: Path, changes: str, *dropped: str) -> System:
    """Return a system with other hparams, and without some weights."""
    model = read_marian(folder)
    weights = {
        path: value
        for path, value in model.weights.items()
        if not any(re.search(pattern, path) for pattern in dropped)
    }
    return write_run(
        dataclasses.replace(
            model, hparams=f"{model.hparams},{changes}", weights=weights
        ),
        run,
    )


def test_a_decoder_that_starts_from_zeros_needs_a_row_of_zeros(folder, tmp_path):
    system = changed(folder / "shared", tmp_path / "run", "decoder_start=zeros")
    with pytest.raises(UserError, match="train with decoder_start=pad"):
        export_system(system, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()
    # The softmax has its own row.
    system = changed(folder / "untied", tmp_path / "untied", "decoder_start=zeros")
    exported = read_safetensors(
        export_system(system, tmp_path / "exported") / "model.safetensors"
    )
    pad = system.source_tokenizer.vocabulary.pad
    assert not exported["model.decoder.embed_tokens.weight"][pad].any()
    assert exported["lm_head.weight"][pad].any()


def test_biases_that_a_model_lacks_are_zeros(folder, tmp_path):
    lacking = ("attention/(query|key|value|output)/bias", "shared_embedding/bias")
    changes = "attention_bias=False,logit_bias=False"
    system = changed(folder / "shared", tmp_path / "run", changes, *lacking)
    exported = read_safetensors(
        export_system(system, tmp_path / "exported") / "model.safetensors"
    )
    attention = {name: x for name, x in exported.items() if "_proj.bias" in name}
    assert len(attention) == 4 * (2 + 2)
    for value in (*attention.values(), exported["final_logits_bias"]):
        assert not value.any()


def test_a_run_trains_on_with_text_prepared_with_its_tokenizers(
    folder, expected, tmp_path, monkeypatch
):
    run, data = tmp_path / "run", str(tmp_path / "data")
    system = write_run(read_marian(folder / "shared"), run)
    files = {}
    for side, texts in (("source", "sources"), ("target", "target_texts")):
        files[side] = tmp_path / side
        files[side].write_text("\n".join(expected[texts] * 4) + "\n", encoding="utf-8")
    names = {"source": "inputs", "target": "targets"}
    flags = []
    for side, file in files.items():
        flags += [f"--{split}_{side}={file}" for split in ("train", "dev")]
        flags += [f"--{side}_model={run / system.run.tokenizers[names[side]]}"]
    assert main(["datagen", "--problem", "text_pairs", "--data_dir", data, *flags]) == 0
    train_eagerly(monkeypatch)
    train = ["train", "--data_dir", data, "--output_dir", str(run), "--train_steps=1"]
    assert main([*train, "--eval_sentences", "0", "--no_final_score"]) == 0
    after = System.load(run)
    assert after.run.hparams.shared_embedding_and_softmax_weights
    assert after.model.source_embedding is after.model.softmax
    before = {v.path: v.numpy() for v in system.model.weights}
    change = max(np.abs(v.numpy() - before[v.path]).max() for v in after.model.weights)
    assert 0 < change < 1e-3


class Payload:
    def __reduce__(self):
        return (Path.touch, (Path("executed"),))


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("archive/data.pkl", content)
        out.writestr("archive/data/0", b"")
    return archive.getvalue()


@pytest.mark.parametrize("packed", [zipped, bytes], ids=["zip", "legacy"])
def test_a_pickle_that_calls_anything_is_refused_and_not_executed(
    tmp_path, monkeypatch, packed
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(packed(pickle.dumps({"model.shared.weight": Payload()})))
    with pytest.raises(UserError, match=r"names pathlib\S*\.\w+, which no file of"):
        read_torch_file(path)
    assert not (tmp_path / "executed").exists()


TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n(("
    b"X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" + b"0tQK\0"
)
NAME = b"}X\x01\0\0\0x"


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        (b"K\1r\xff\xff\xff\x7f.", "a int instead of a dict"),
        (b"})" + b"2\x86" * 60 + b"Ns.", "the instruction DUP"),
        (b"})" + b"q\0h\0\x86" * 60 + b"Ns.", "a key that is no name"),
        (NAME + TENSOR + b"(" + b"K\x02" * 40_000 + b"tK\x01\x85tRs.", "another shape"),
        (b"N" * 2**20 + b".", "more than 1,048,576 instructions"),
        (NAME + TENSOR + b"K\x01\x85K\x01\x85tRs.", "1 values, of which 0 are there"),
    ],
    ids=["memory", "copies", "keys", "axes", "length", "values"],
)
def test_a_small_pickle_takes_little_time_and_memory(tmp_path, instructions, message):
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(zipped(b"\x80\x02" + instructions))
    begin = time.monotonic()
    with pytest.raises(UserError, match=message):
        read_torch_file(path)
    assert time.monotonic() - begin < 10


def header(
    path: Path,
    name: str = "final_logits_bias",
    start: int | None = None,
    end: int | None = None,
    **changes: object,
) -> None:
    """Change the description of a tensor of a file; `end` is also counted from it."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    values = json.loads(content[8 : 8 + length])
    about = values.setdefault(name, {"dtype": "F32", "data_offsets": [0, 0]})
    if start is not None:
        about["data_offsets"][0] = start
    if end is not None:
        about["data_offsets"][1] = about["data_offsets"][0] + end
    about.update(changes)
    text = json.dumps(values).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


SHARED = "model.shared.weight"
POSITIONS = "model.encoder.embed_positions.weight"
BAD = {
    "another model": (
        lambda f: change(f / "config.json", model_type="bart"),
        "model_type='bart', expected 'marian'",
    ),
    "a missing file": (
        lambda f: (f / "target.spm").unlink(),
        "cannot read .*target.spm",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "without weights, expected model.safetensors or pytorch_model.bin",
    ),
    "cut weights": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:9000]
        ),
        "is cut, damaged or no safetensors file",
    ),
    "a length beyond the file": (
        lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 40),
        "is cut, damaged or no safetensors file",
    ),
    "a shape that does not fit": (
        lambda f: header(f / "model.safetensors", shape=[1, 93]),
        "is cut, damaged or no safetensors file",
    ),
    "integers": (
        lambda f: header(f / "model.safetensors", dtype="I32"),
        "is cut, damaged or no safetensors file",
    ),
    "fewer layers in the file": (
        lambda f: change(f / "config.json", encoder_layers=3),
        "lack model.encoder.layers.2.self_attn.q_proj.weight",
    ),
    "more layers in the file": (
        lambda f: change(f / "config.json", encoder_layers=1),
        "have 'model.encoder.layers.1.fc1.bias', which no MarianMT",
    ),
    "another width": (
        lambda f: change(f / "config.json", encoder_ffn_dim=16, decoder_ffn_dim=16),
        "of shape .12, 8., expected .16, 8.",
    ),
    "a million layers": (
        lambda f: change(f / "config.json", encoder_layers=10**6),
        "num_hidden_layers: received 1000000",
    ),
    "another vocabulary": (
        lambda f: change(f / "config.json", vocab_size=91),
        "92 rows of embeddings, config.json a vocabulary of 91",
    ),
    "ids that collide": (
        lambda f: change(f / "vocab.json", **{"▁": 3}),
        "with id 3 of both",
    ),
    "an id beyond": (
        lambda f: change(f / "vocab.json", **{"▁": 4000}),
        "with id 4000 of '▁', expected a number from 0 to 91",
    ),
    "another start": (
        lambda f: change(f / "config.json", decoder_start_token_id=0),
        "decoder_start_token_id=0, expected",
    ),
    "words that are forbidden": (
        lambda f: change(f / "generation_config.json", bad_words_ids=[[5, 6]]),
        "bad_words_ids",
    ),
    "embeddings that are not scaled": (
        lambda f: change(f / "config.json", scale_embedding=False),
        "scale_embedding=False, expected True",
    ),
    "a damaged SentencePiece": (
        lambda f: (f / "source.spm").write_bytes(b"damaged"),
        "source.spm, expected a SentencePiece model",
    ),
    "no JSON": (
        lambda f: (f / "config.json").write_text("{"),
        "config.json is damaged",
    ),
    "a width of text": (
        lambda f: change(f / "config.json", d_model="8"),
        "d_model='8', expected a number of at least 1",
    ),
    "an activation of a list": (
        lambda f: change(f / "config.json", activation_function=[]),
        r"activation_function=\[\], expected one of",
    ),
    "half a character": (
        lambda f: change(f / "vocab.json", **{"\ud800": 92}),
        r"with the entry '.ud800', expected text",
    ),
    "an empty SentencePiece": (
        lambda f: (f / "source.spm").write_bytes(b""),
        "source.spm, expected a SentencePiece model",
    ),
    "a choice of text": (
        lambda f: change(f / "tokenizer_config.json", separate_vocabs="no"),
        "separate_vocabs='no', expected true or false",
    ),
    "weights without an axis": (
        lambda f: header(f / "model.safetensors", SHARED, shape=[], end=4),
        "have 0 rows of embeddings",
    ),
    "weights that overlap": (
        lambda f: header(f / "model.safetensors", SHARED, start=0, end=92 * 8 * 4),
        "tensors that overlap",
    ),
    "a billion positions of nothing": (
        lambda f: header(f / "model.safetensors", POSITIONS, shape=[10**9, 0], end=0),
        "are not the sinusoids",
    ),
    "weights that are no numbers": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:-4] + b"\xff" * 4
        ),
        "of .* that are no finite numbers",
    ),
    "a dropout of text": (
        lambda f: change(f / "config.json", dropout="a,b"),
        "layer_prepostprocess_dropout|hparams",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_folder_is_one_sentence_and_nothing_is_written(
    name, copy, tmp_path, capsys
):
    damage, message = BAD[name]
    damage(copy)
    run = tmp_path / "run"
    arguments = ["import", "--from", "huggingface", str(copy), "--output_dir", str(run)]
    assert main(arguments) in (1, 2)
    shown = capsys.readouterr().err
    assert re.search(message, shown), shown
    assert "Traceback" not in shown
    assert not run.exists()


def test_an_export_names_what_marian_cannot_compute(trained, tmp_path, capsys):
    arguments = ["--output_dir", str(trained.output_dir), "--format", "huggingface"]
    export_dir = tmp_path / "exported"
    assert main(["export", *arguments, "--export_dir", str(export_dir)]) == 1
    shown = capsys.readouterr().err
    assert "received pos=timing, expected timing_halves: train with it" in shown
    assert "received norm_epsilon=1e-06, expected 1e-05" in shown
    assert "hparams_set=transformer_marian has all of these" in shown
    assert not export_dir.exists()

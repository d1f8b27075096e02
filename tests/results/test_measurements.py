from __future__ import annotations

import gzip
import io
import json
import tarfile
from importlib import resources

import pytest

from results.measurements import Measurement, measurements_in, recorded_measurements
from t2t_repro import catalogue
from t2t_repro.features.parsing.bracketing import score_trees
from t2t_repro.features.parsing.trees import read_trees
from t2t_repro.features.reproduction.result_files import results_in, shipped_results
from t2t_repro.features.synthetic.synthetic_corpus import sentences
from t2t_repro.translation_scores import bleu

MEASUREMENT = Measurement(
    name="a_name",
    source="a test",
    commit="abc1234",
    date="2026-11-23",
    command="t2t train",
    hardware="2 x CPU",
    signature="nrefs:1",
    numbers={"bleu": 12.5},
    table={
        "columns": [
            {"heading": "steps", "format": ",d"},
            {"heading": "nll", "format": ".2f"},
        ],
        "rows": [[1000, 3.125], [2000, None]],
    },
)


@pytest.mark.parametrize("measurement", recorded_measurements().values(), ids=str)
def test_a_shipped_measurement_records_where_it_comes_from(measurement):
    assert measurement.command
    assert measurement.hardware
    assert measurement.source
    assert measurement.date
    assert measurement.numbers or measurement.table


def test_the_kept_translations_of_the_embedded_problem_have_the_recorded_bleu():
    kept = resources.files("results") / "data/translations/embedded.txt.gz"
    hypotheses = gzip.decompress(kept.read_bytes()).decode().splitlines()
    pairs = catalogue.problem("translate_ende_synthetic").pairs("test", None)
    references = [target for _, target in pairs]
    recorded = recorded_measurements()["embedded"].numbers["bleu"]
    assert round(bleu(hypotheses, references), 2) == recorded


def test_the_kept_trees_of_the_embedded_treebank_have_the_recorded_f1():
    kept = resources.files("results") / "data/translations/synthetic_parsing.txt.gz"
    lines = gzip.decompress(kept.read_bytes()).decode().splitlines()
    true = [sentence.tree for sentence in sentences("test", len(lines))]
    hypotheses, references = (
        [tree for _, tree in read_trees(text)] for text in (lines, true)
    )
    recorded = recorded_measurements()["synthetic_parsing"].numbers
    assert len(hypotheses) == recorded["sentences"]
    assert round(score_trees(hypotheses, references).f1, 2) == recorded["f1"]


def test_the_kept_translations_of_a_run_belong_to_its_result_file():
    data = resources.files("results") / "data"
    folders = {
        "results": shipped_results(),
        "repeats": results_in(data / "repeats"),
        "peaks": results_in(data / "peaks"),
    }
    recorded = {
        f"{folder}/{result.file_name.removesuffix('.json')}"
        for folder, results in folders.items()
        for result in results
    }
    kept = (data / "translations/weighted.tar.xz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(kept)) as x:
        texts = {name: x.extractfile(name).read() for name in x.getnames()}
    for name, text in texts.items():
        run, split, _ = name.rsplit(".", 2)
        assert run in recorded
        assert text.count(b"\n") == {"dev": 1014, "test": 1000}[split]


def test_a_table_is_written_with_its_formats():
    assert MEASUREMENT.table_text().splitlines() == [
        "| steps | nll |",
        "| --- | --- |",
        "| 1,000 | 3.12 |",
        "| 2,000 |  |",
    ]


def test_a_long_command_is_broken_before_its_flags():
    flags = " ".join(f"--flag_{number} value_{number}" for number in range(12))
    command = f"t2t train {flags}"
    lines = (
        Measurement(**{**vars(MEASUREMENT), "command": command})
        .values()["command"]
        .split(" \\\n    ")
    )
    assert len(lines) > 2
    assert " ".join(lines) == command
    assert max(map(len, lines)) <= 94


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a_name.json", '{"name": "a_name"}'),
        ("other.json", json.dumps(vars(MEASUREMENT))),
    ],
)
def test_a_file_that_is_not_a_measurement_is_an_error(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=name.partition(".")[0]):
        measurements_in(tmp_path)


def test_measurements_of_a_folder_are_read_by_name(tmp_path):
    (tmp_path / "a_name.json").write_text(json.dumps(vars(MEASUREMENT)))
    (tmp_path / "notes.txt").write_text("")
    assert measurements_in(tmp_path) == {"a_name": MEASUREMENT}

"""Problems of packages that were written for tensor2tensor."""

from __future__ import annotations

import gzip
import importlib.util
import sys

import pytest

from t2t_repro import catalogue, registry
from t2t_repro.constants import EOS_ID
from t2t_repro.data import encoding
from t2t_repro.data.prepare import open_or_prepare, prepare
from t2t_repro.data.prepared import PreparedData
from t2t_repro.data.records import example_bytes, example_ids, record_writer, records_of
from t2t_repro.data.request import requested_settings
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.tensor2tensor import command_main
from tests.support.old_packages import old_packages

COUNTING = """
    class CountUp(text_problems.Text2TextProblem):
        "Counts."
        is_generate_per_split = False

        @property
        def dataset_splits(self):
            return [{"split": TRAIN, "shards": 2},
                    {"split": problem.DatasetSplit.EVAL, "shards": 1},
                    {"split": "test", "shards": 1}]

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for number in range(8):
                yield {"inputs": "n %d" % number, "targets": "m %d" % number, "id": [1]}
"""
# Every side is text, so nothing has to be learned.
LETTERS = """
    @registry.register_problem
    class Letters(text_problems.Text2TextProblem):
        vocab_type = text_problems.VocabType.CHARACTER
        def is_generate_per_split(self):  # a method, which counts as true
            return True
        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "%s é" % dataset_split, "targets": "b"}
"""


@pytest.fixture
def load(tmp_path):
    with old_packages(tmp_path) as loader:
        yield loader


def write(folder, **files):
    """Write lines into files; "__" stands for a dot, and "_in_" for a slash."""
    for name, lines in files.items():
        path = folder.joinpath(*name.replace("__", ".").split("_in_"))
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write(text)


def pairs(name, split="train", tmp_dir=None, data_dir="data"):
    problem = catalogue.problem(name).base.in_folder(data_dir)
    return list(problem.pairs(split, tmp_dir))


def ids_of(data, split="dev"):
    (name,) = data.manifest.splits[split].shards
    records = map(example_ids, records_of(data.folder / name))
    return [tuple([*ids[side]] for side in ("inputs", "targets")) for ids in records]


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ("@registry.register_problem", "count_up"),
        ("@registry.register_problem()", "count_up"),
        ("@registry.register_problem('my_name')", "my_name"),
        ("@registry.register_problem(name='my_name')", "my_name"),
    ],
)
def test_a_problem_is_registered_where_the_package_does_it(load, decorator, name):
    package = load(f"\n    {decorator}{COUNTING}")
    entry = registry.problems.entry(name)
    assert entry.summary == "Counts."
    assert entry.location.startswith(str(package / "code.py"))
    assert catalogue.problem(name).splits == ("train", "dev", "test")


def test_one_generator_is_dealt_to_the_shards_of_all_splits_in_turn(load):
    load(f"\n    @registry.register_problem{COUNTING}")
    numbers = {
        split: [int(source[2:]) for source, _ in pairs("count_up", split)]
        for split in ("train", "dev", "test")
    }
    assert numbers == {"train": [0, 1, 4, 5], "dev": [2, 6], "test": [3, 7]}


def test_random_numbers_are_those_of_the_split_in_every_pass(load):
    load("""
        import random
        import numpy
        @registry.register_problem
        class Drawn(text_problems.Text2TextProblem):
            is_generate_per_split = True
            def generate_samples(self, data_dir, tmp_dir, dataset_split):
                for _ in range(5):
                    yield {"inputs": str(random.random()),
                           "targets": str(numpy.random.randint(1000))}
    """)
    assert pairs("drawn") == pairs("drawn") != pairs("drawn", "dev")


def test_files_in_tmp_dir_are_read_as_tensor2tensor_does(load, tmp_path):
    write(
        tmp_path,
        inputs__train__txt=["  a\u3000", "b\u2028c", "left over"],
        targets__train__txt=["x", "y\t"],
        inputs__eval__txt=["d"],
    )
    load("""
        @registry.register_problem
        class OwnFiles(text_problems.Text2textTmpdir):
            inputs_prefix = "to German: "
    """)
    expected = [("to German: a", "x"), ("to German: b\u2028c", "y")]
    assert pairs("own_files", tmp_dir=tmp_path) == expected
    with pytest.raises(UserError, match=rf"no file targets\.eval\.txt in {tmp_path}"):
        pairs("own_files", "dev", tmp_path)


CORPORA = """
    FILES = [["http://h/a.tgz", ("a/s.en", "a/t.de")],
             ["http://h/b.tgz", ("b/s.en.gz", "b/t.de.gz")],
             ["http://h/c.tar", ("tsv", 2, 0, "c/*.tsv")]]
    SGM = [["http://h/d.tgz", ("d/s.en.sgm", "d/t.de.sgm")]]

    @registry.register_problem
    class TranslateOwn(translate.TranslateProblem):
        def source_data_files(self, dataset_split):
            return FILES if dataset_split == TRAIN else SGM
"""


def test_corpora_of_all_kinds_are_compiled_once(load, tmp_path):
    write(
        tmp_path,
        a_in_s__en=["one", "", "two"],
        a_in_t__de=["eins", "leer", "zwei"],
        b_in_s__en__gz=["three"],
        b_in_t__de__gz=["drei"],
        c_in_x__tsv=["vier\t-\tfour", "no tab", "\t-\tempty"],
        d_in_s__en__sgm=["<doc>", '<seg id="1"> a > b </seg>', "</doc>"],
        d_in_t__de__sgm=["<doc>", '<seg id="1">c</seg>', "</doc>"],
    )
    load(CORPORA)
    expected = [("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")]
    assert pairs("translate_own", tmp_dir=tmp_path) == expected
    assert pairs("translate_own", "dev", tmp_path) == [("a > b", "c")]
    (tmp_path / "a" / "s.en").unlink()
    assert pairs("translate_own", tmp_dir=tmp_path) == expected
    compiled = tmp_path / "translate_own-compiled-train.lang2"
    assert compiled.read_text().split() == ["eins", "zwei", "drei", "vier"]


def test_a_missing_corpus_is_named_with_its_folder_and_not_downloaded(load, tmp_path):
    load(CORPORA)
    with pytest.raises(UserError, match=rf"no file s\.en in {tmp_path}/a.*http://h/a"):
        pairs("translate_own", tmp_dir=tmp_path)
    assert not [path for path in tmp_path.iterdir() if "compiled" in path.name]


def test_bytes_are_the_letters_in_this_process_and_in_others(
    load, tmp_path, monkeypatch
):
    load(LETTERS)
    monkeypatch.setattr(encoding, "_ITEMS_BEFORE_WORKERS", 0)
    data = prepare(catalogue.problem("letters"), tmp_path / "data", num_workers=2)
    assert data.manifest.splits["train"].pairs_written == 1
    text = [byte + 2 for byte in "eval é".encode()]
    assert ids_of(data) == [([*text, EOS_ID], [ord("b") + 2, EOS_ID])]
    assert len(data.manifest.splits["train"].shards) == 100


def test_settings_of_a_vocabulary_that_the_package_gives_are_refused(load, tmp_path):
    load(LETTERS)
    with pytest.raises(UsageError, match=r"vocab_size=300 .* makes its vocabulary"):
        requested_settings(catalogue.problem("letters"), {"vocab_size": 300})
    write(tmp_path, en__txt=["a b"], de__txt=["c d"])
    write(tmp_path / "data", vocab__twoen=_ENTRIES, vocab__twode=_ENTRIES)
    load(TWO_VOCABULARIES)
    problem = catalogue.problem("two_vocabularies")
    settings = requested_settings(problem, {"vocab_size": 300})
    with pytest.raises(UsageError, match=r"vocab_size=300 .*vocabulary \(.*twoen\)"):
        prepare(problem, tmp_path / "data", tmp_path, settings)


def test_tokens_are_those_of_the_file_that_the_package_writes(load, tmp_path):
    write(
        tmp_path,
        **{f"{side}__{split}__txt": ["a c"] for side, split in SIDES_AND_SPLITS},
        vocab__txt=["a", "b"],
    )
    load("""
        @registry.register_problem
        class Words(text_problems.Text2textTmpdirTokens):
            pass
        @registry.register_problem
        class OtherWords(Words):
            oov_token = "OTHER"
            vocab_filename = "vocab.words.tokens"
    """)
    folder = tmp_path / "data"
    folder.mkdir()
    data = prepare(catalogue.problem("words"), folder, tmp_path)
    assert ids_of(data) == [([3, 2, EOS_ID], [3, 2, EOS_ID])]
    lines = (folder / "vocab.words.tokens").read_text().split()
    assert lines == ["<pad>", "<EOS>", "<UNK>", "a", "b"]
    with pytest.raises(UserError, match=r"oov_token 'OTHER' .* expected '<UNK>'"):
        prepare(catalogue.problem("other_words"), folder, tmp_path)


SIDES_AND_SPLITS = [(s, p) for s in ("inputs", "targets") for p in ("train", "eval")]
TWO_VOCABULARIES = """
    @registry.register_problem
    class TwoVocabularies(text_problems.Text2TextProblem):
        is_generate_per_split = True
        vocab_filename = "vocab.two"

        def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
            source, target = [
                generator_utils.get_or_generate_vocab(
                    data_dir, tmp_dir, self.vocab_filename + name, 300 + number,
                    [["", [name + ".txt"]]])
                for number, name in enumerate(("en", "de"))]
            for pair in text_problems.text2text_txt_iterator(
                    os.path.join(tmp_dir, "en.txt"), os.path.join(tmp_dir, "de.txt")):
                inputs = source.encode(pair["inputs"])
                inputs.append(text_encoder.EOS_ID)
                targets = target.encode(pair["targets"]) + [text_encoder.EOS_ID]
                yield {"inputs": inputs, "targets": targets}

        def feature_encoders(self, data_dir):
            return {side: text_encoder.SubwordTextEncoder(
                        os.path.join(data_dir, self.vocab_filename + name))
                    for side, name in (("inputs", "en"), ("targets", "de"))}
"""
_LETTERS = "abcdh_\\u;0123456789<p>EOS"
_ENTRIES = [f"'{entry}'" for entry in ("<pad>_", "<EOS>_", *_LETTERS)]


def test_a_package_can_learn_a_vocabulary_for_each_side(load, tmp_path):
    text = [f"a {chr(97 + n)} sentence of {n} words" for n in range(26)]
    write(tmp_path, en__txt=text, de__txt=[line.upper() for line in text])
    load(TWO_VOCABULARIES)
    data = prepare(catalogue.problem("two_vocabularies"), tmp_path / "data", tmp_path)
    source, target = data.tokenizers()
    assert source.pieces([300 - 1]) != target.pieces([300 - 1])
    assert data.manifest.vocab_sizes == {"inputs": 300, "targets": 301}
    reversed_data = PreparedData.load(
        data.folder, catalogue.problem("two_vocabularies_rev")
    )
    assert reversed_data.tokenizers()[0].to_bytes() == target.to_bytes()


def test_tensor2tensors_vocabulary_is_used_if_it_is_in_data_dir(load, tmp_path):
    write(tmp_path, en__txt=["a b"], de__txt=["c d"])
    write(tmp_path / "data", vocab__twoen=_ENTRIES, vocab__twode=_ENTRIES)
    load(TWO_VOCABULARIES)
    data = prepare(catalogue.problem("two_vocabularies"), tmp_path / "data", tmp_path)
    assert [t.filename_suffix for t in data.tokenizers()] == [".subwords"] * 2
    assert ids_of(data) == [([2, 7, 3, 7, EOS_ID], [4, 7, 5, 7, EOS_ID])]


@pytest.mark.parametrize(
    ("code", "name", "ids"),
    [
        (TWO_VOCABULARIES, "two_vocabularies", [2, 7, EOS_ID]),
        (LETTERS, "letters", [ord("a") + 2, EOS_ID]),
    ],
)
def test_data_of_tensor2tensor_is_read_with_the_vocabularies_of_the_package(
    load, tmp_path, code, name, ids
):
    load(code)
    folder = tmp_path / "data"
    write(folder, vocab__twoen=_ENTRIES, vocab__twode=_ENTRIES)
    for split in ("train", "dev"):
        with record_writer(folder / f"{name}-{split}-00000-of-00001") as add:
            add(example_bytes(ids, ids))
    data = open_or_prepare(catalogue.problem(name), folder)
    assert data.raw_text("dev") == (["a"], ["a"])
    assert {path.suffix for path in folder.iterdir()} >= {".json", ".txt"}
    problem = catalogue.problem(name).package_problem
    assert problem.dev_filepaths("data", 1, True) == [f"data/{name}-dev-00000-of-00001"]


def test_a_distilled_problem_learns_the_outputs_of_the_teacher(load, tmp_path):
    write(tmp_path, x_inputs=["a"], x_gold=["b"], x_prediction=["c"])
    folder = tmp_path / "data"
    write(folder, vocab__distilled__9__subwords=_ENTRIES)
    load(f"""
    @registry.register_problem
    class Distilled(translate.TranslateDistillProblem):
        approx_vocab_size = 9
        def source_data_files(self, dataset_split):
            return {str(tmp_path / "x_")!r}
    """)
    problem = catalogue.problem("distilled")
    data = prepare(problem, folder)
    assert ids_of(data) == [([2, 7, EOS_ID], [4, 7, EOS_ID])]
    with pytest.raises(UserError, match="whose targets are not those that are learned"):
        problem.in_folder(folder).stored_tokenizers()


def test_an_old_command_prepares_the_problem_of_a_package(load, tmp_path, capsys):
    package = load(LETTERS)
    folder = tmp_path / "data"
    flags = [f"--t2t_usr_dir={package}", "--problem=letters", f"--data_dir={folder}"]
    assert command_main.run("t2t-datagen", flags) == 0
    assert "t2t datagen" in capsys.readouterr().err
    assert (folder / "letters-train-00099-of-00100").is_file()


PAIR = """
        is_generate_per_split = True
        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "a", "targets": "b"}
"""
UNCALLED = "def hparams(self, defaults, model_hparams):\n            pass"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (UNCALLED, r"code\.py:1[2-9]: problem own: `hparams` is not here: modalities"),
        ("packed_length = 256", "packed_length=256 is not here: the hparam packed_len"),
        ("multiprocess_generate = True", "multiprocess_generate=True is not here"),
        ("has_inputs = False", "has_inputs=False is not here: there are no language"),
        ("max_length = 3", "`max_length` is not here: set max_length in the hparams"),
        ("additional_reserved_tokens = ['x']", r"reserved tokens \['x'\] is not here"),
        ("feature_encoders = None", "choose the vocabularies in `generate_encoded_sam"),
        ("dataset_splits = [{'split': 'x', 'shards': 1}]", "received split 'x', expec"),
        ("dataset_splits = None", "dataset_splits of None is not here: return a list"),
        (
            "dataset_splits = [{'split': 'train', 'shards': 10**9}]",
            "received 1000000000 shards of train, expected a number from 1 to 99,999",
        ),
        ("vocab_type = 'x'", "its vocabulary .ValueError: Unrecognized VocabType: x"),
        (
            "def get_or_create_vocab(self, *a, **k):\n            return OwnEncoder()",
            "an encoder of the package's own is not here",
        ),
        (
            "def generate_encoded_samples(self, *a):\n"
            "            e = text_encoder.ByteTextEncoder()\n"
            "            yield {'inputs': len(e.encode('a'))}",
            r"code\.py:1[2-9]: working with the ids of a text is not here",
        ),
    ],
)
def test_what_a_problem_asks_for_in_vain_is_named(load, tmp_path, line, message):
    load(f"""
    class OwnEncoder(object):
        def encode(self, text):
            return [2]

    @registry.register_problem
    class Own(text_problems.Text2TextProblem):
        {line}
{PAIR}
    """)
    folder = tmp_path / "data"
    with pytest.raises(UserError, match=message):
        prepare(catalogue.problem("own"), folder)
    assert not folder.exists() or not [*folder.glob("own-*")]


@pytest.mark.parametrize(
    "sample", ["None", "{'inputs': 'a'}", "['a', 'b']", "{'inputs': 1, 'targets': 2}"]
)
def test_a_sample_that_is_no_pair_of_texts_is_refused(load, tmp_path, sample):
    load(f"""
    @registry.register_problem
    class Own(text_problems.Text2TextProblem):
        is_generate_per_split = True

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {sample}
    """)
    with pytest.raises(UserError, match="yield dicts with the texts of inputs and"):
        prepare(catalogue.problem("own"), tmp_path / "data")


OTHERS = """
    from tensor2tensor.data_generators import image_utils
    from tensor2tensor.layers import common_layers, modalities
    from tensor2tensor.utils import metrics, t2t_model

    @registry.register_model
    class OwnModel(t2t_model.T2TModel):
        top = modalities.ModalityType.SYMBOL

    @registry.register_problem
    class Pictures(image_utils.ImageProblem):
        pass

    @registry.register_ranged_hparams
    def some_range(rhp):
        rhp.set_float("learning_rate", 0.1, 1.0)
"""


def test_other_models_and_problems_of_a_package_are_refused_only_if_asked_for(load):
    load(OTHERS + LETTERS)
    assert catalogue.problem("letters").name == "letters"
    with pytest.raises(UsageError, match=r"code\.py:\d+: problems are pairs of text"):
        catalogue.problem("pictures")
    with pytest.raises(UsageError, match=r"code\.py:\d+: the model is the Transformer"):
        catalogue.model("own_model")
    with pytest.raises(UsageError, match="problems are pairs of text here"):
        command_main.translate("t2t-datagen", ["--problem=pictures"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("text_encoder.ClassLabelEncoder()", "the encoders here are SubwordTextEnc"),
        ("import tensor2tensor.rl.ppo as p\np.run()", "no such module here"),
        (
            "import tensorflow as tf\ntf.flags.FLAGS",
            "import tensorflow.compat.v1 as tf",
        ),
    ],
)
def test_a_call_without_a_stand_in_is_answered_with_its_line(load, code, message):
    with pytest.raises(UserError, match=rf"code\.py:\d+: .*{message}"):
        load(f"\n{code}\n")


def test_only_a_line_of_a_package_can_import_the_modules(load):
    load("", imports="x = 1\n")
    assert importlib.util.find_spec("tensor2tensor") is None
    load("from tensor2tensor.utils import registry", imports="")
    assert "stand_ins" in type(sys.modules["tensor2tensor"].__loader__).__module__

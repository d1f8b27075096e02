# ruff: noqa: RUF001 - characters that look like others are what is tested
from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from t2t_repro.errors import UserError
from t2t_repro.text import SentencePieceTokenizer, load_tokenizer, train_sentencepiece
from t2t_repro.text.lines import is_blank

HARD_LINES = [
    "",
    " ",
    "   leading and trailing   ",
    "two  spaces   inside",
    "\ttab\tinside\t",
    "carriage return\r",
    "form\x0cfeed and \x0b vertical tab",
    "control \x01\x02\x1b[31m\x7f characters",
    "null \x00 inside",
    "next line \x85 and separators \u2028 and \u2029",
    "no-break\u00a0space, narrow\u202fone, ideographic\u3000one",
    "zero\u200bwidth\u200cjoin\u200der and \ufeff mark, soft\u00adhyphen",
    "\u2581escaped\u2581\u2581space\u2581",
    "\u2581",
    "unknown \u2585 \u2047 \ufffd \u2580",
    "שלום עולם مرحبا بالعالم",
    "\u202ereversed\u202c \u2066isolate\u2069",
    "😀 👩‍👩‍👧‍👦 🇩🇪 👍🏽 \U0001f9d1\u200d\U0001f680",
    "Z\u0351\u036b\u0343a\u0334\u0321l\u0320g\u0321o\u0352 \u0301 alone",
    "\u0301starts with a combining mark",
    "\ue000\uf8ff private use \U000f0000\U0010fffd",
    "noncharacters \ufffe\uffff\U0001ffff",
    "ﬁ ﬂ ½ ² № ㎏ … Ａ Å Å é é",
    "\u212b A\u030a \u00c5 \uac00 \u1100\u1161",
    "ß ẞ İ ı ſ Ω Ω",
    "漢字かな交じり文 한국어 ไทย हिन्दी",
    "<pad> </s> <unk> <s> <0x41> <0xE2><0x96>",
    "\\u0041 %s {0} $HOME `ls` <script>alert(1)</script>",
    "𝕿𝖍𝖊 𝓺𝓾𝓲𝓬𝓴 𐐀 𓀀",
    "a" * 5_000,
    "long line " * 2_000,
    "é" * 3_000,
]

TRAINING_LINES = [
    f"the {size} {colour} {thing} sees a {other} under the tree ."
    for size in ("small", "big", "old", "young")
    for colour in ("red", "green", "blue", "grün", "weiß")
    for thing in ("house", "cat", "dog", "Straße", "café")
    for other in ("bird", "car", "child", "Vögel", "Mädchen", "Pferd", "lion")
]


def expected_normalization(text: str) -> str:
    """Normalize a text independently of the model: trim and merge spaces."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(" +", " ", text.replace("\u2581", " ")).strip(" ")


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(
        train_sentencepiece(TRAINING_LINES, vocab_size=300, model_type=request.param)
    )


def random_lines(count: int) -> list[str]:
    generator = random.Random(7)
    planes = (0x80, 0x250, 0x3000, 0xFFFF, 0x10FFFF)
    return [
        "".join(
            chr(generator.randrange(generator.choice(planes)))
            for _ in range(generator.randrange(1, 30))
        ).replace("\n", " ")
        for _ in range(count)
    ]


@pytest.fixture(scope="session")
def naughty_strings(shared_data: Path) -> list[str]:
    path = shared_data / "noisy" / "blns" / "blns.txt"
    return path.read_bytes().decode().split("\n")


def assert_survive(tokenizer: SentencePieceTokenizer, lines: list[str]) -> None:
    returned = [tokenizer.decode(tokenizer.encode(line)) for line in lines]
    assert returned == [expected_normalization(line) for line in lines]


def test_hard_and_random_lines_survive_encoding_and_decoding(tokenizer):
    assert_survive(tokenizer, HARD_LINES)
    assert_survive(tokenizer, [x for x in random_lines(500) if not is_blank(x)])


def test_naughty_strings_survive_encoding_and_decoding(tokenizer, naughty_strings):
    assert_survive(tokenizer, [x for x in naughty_strings if not is_blank(x)])


def test_the_graph_gives_the_same_ids_and_text(tokenizer):
    lines = [*HARD_LINES, *random_lines(300)]
    encodable = [line.encode("utf-8", "replace").decode() for line in lines]
    in_graph = tokenizer.in_graph()
    ids = in_graph.encode(encodable)
    assert ids.to_list() == [tokenizer.encode(line) for line in encodable]
    texts = in_graph.decode(ids.to_tensor())
    expected = [expected_normalization(line) for line in encodable]
    assert [text.decode() for text in texts.numpy()] == expected


def test_random_ids_decode_to_the_same_text_inside_the_graph(tokenizer):
    generator = random.Random(3)
    rows = [
        [generator.randrange(tokenizer.vocab_size) for _ in range(12)]
        for _ in range(300)
    ]
    texts = tokenizer.in_graph().decode(rows)
    expected = [tokenizer.decode(row) for row in rows]
    assert [text.decode() for text in texts.numpy()] == expected


def test_decoding_stops_at_the_first_end_of_sentence(tokenizer):
    ids = [*tokenizer.encode("the red house"), 1, *tokenizer.encode("a tree")]
    assert tokenizer.decode(ids) == "the red house"
    assert tokenizer.decode([0, *ids[:-1], 0, 0]) == "the red house"


def test_encoding_a_batch_gives_the_ids_of_each_text(tokenizer):
    assert tokenizer.encode_batch(HARD_LINES) == [
        tokenizer.encode(line) for line in HARD_LINES
    ]


def test_padding_end_of_sentence_and_unknown_are_0_1_and_2(tokenizer):
    assert tokenizer.encode("") == []
    assert tokenizer.decode([2]).strip() == "⁇"
    assert tokenizer.decode([1, 5, 5]) == tokenizer.decode([0]) == ""


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize(("coverage", "rare_is_whole"), [(1.0, True), (0.99, False)])
def test_characters_beyond_the_coverage_are_spelt_in_bytes(
    model_type, coverage, rare_is_whole
):
    # The rare character is about one in 20,000.
    tokenizer = SentencePieceTokenizer(
        train_sentencepiece(
            [*TRAINING_LINES, "ж"],
            vocab_size=300,
            model_type=model_type,
            character_coverage=coverage,
        )
    )
    # Its two bytes are two ids.
    assert (len(tokenizer.encode("aж")) - len(tokenizer.encode("a")) == 1) == (
        rare_is_whole
    )


def test_a_text_too_small_for_the_vocabulary_gives_a_smaller_one_and_a_warning(
    caplog, capfd
):
    first, second = (train_sentencepiece(TRAINING_LINES, vocab_size=300) for _ in "12")
    assert first == second
    assert SentencePieceTokenizer(first).vocab_size == 300
    assert caplog.messages == []
    model = train_sentencepiece(TRAINING_LINES, vocab_size=50_000)
    size = SentencePieceTokenizer(model).vocab_size
    assert size < 50_000
    assert f"the vocabulary has {size}" in caplog.text
    assert capfd.readouterr() == ("", "")  # nothing of SentencePiece itself


def test_a_vocabulary_too_small_for_the_characters_names_the_smallest():
    with pytest.raises(UserError, match=r"received vocabulary size 100.*at least \d+"):
        train_sentencepiece(TRAINING_LINES, vocab_size=100)


def test_training_reads_all_of_a_line_longer_than_the_trainers_limit():
    line = " ".join(f"filler{index}" for index in range(900)) + " zebra" * 200
    model = train_sentencepiece([line], vocab_size=2_000)
    assert len(SentencePieceTokenizer(model).encode("zebra")) == 1


def test_training_reads_lines_with_tabs_and_nulls():
    lines = ["tabulator\tzebra\x00zebra"] * 20
    model = train_sentencepiece(lines, vocab_size=400)
    assert len(SentencePieceTokenizer(model).encode("zebra")) == 1


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_training_on_no_text_is_refused(lines):
    with pytest.raises(UserError, match="no text"):
        train_sentencepiece(lines, vocab_size=400)


def test_an_error_in_the_text_iterator_reaches_the_user_unchanged():
    def broken():
        yield "one line"
        raise UserError("received bad line 2")

    with pytest.raises(UserError, match="received bad line 2"):
        train_sentencepiece(broken(), vocab_size=400)


def test_a_model_with_other_special_ids_is_refused(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TRAINING_LINES), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines),
        model_prefix=str(tmp_path / "other"),
        vocab_size=40,
        minloglevel=2,
    )
    with pytest.raises(UserError, match="--pad_id=0 --eos_id=1 --unk_id=2"):
        SentencePieceTokenizer(tmp_path / "other.model")


def trained_elsewhere(**options) -> SentencePieceTokenizer:
    """Train a model with SentencePiece's own options, as a user does."""
    usual = {"vocab_size": 330, "model_type": "bpe", "byte_fallback": True}
    usual |= {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING_LINES),
        model_writer=model,
        minloglevel=2,
        hard_vocab_limit=False,
        **(usual | options),
    )
    return SentencePieceTokenizer(model.getvalue())


def words(tokenizer: SentencePieceTokenizer, text: str) -> list[str]:
    ids = [*tokenizer.encode(text), 1]
    return [
        tokenizer.decode(ids[start:end]) for start, end in tokenizer.word_spans(ids)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"treat_whitespace_as_suffix": True},
        {"treat_whitespace_as_suffix": True, "model_type": "unigram"},
        {"split_by_whitespace": False},
        {"user_defined_symbols": ["New\u2581York"]},
    ],
)
def test_a_model_whose_subwords_hide_words_is_refused(options):
    with pytest.raises(UserError, match="only at the start of a subword: train it wi"):
        trained_elsewhere(**options)


def test_a_model_that_keeps_spaces_as_they_are_is_refused():
    proto = sentencepiece_model_pb2.ModelProto.FromString(
        trained_elsewhere().to_bytes()
    )
    proto.normalizer_spec.escape_whitespaces = False
    with pytest.raises(UserError, match="with escape_whitespaces=false, expected"):
        SentencePieceTokenizer(proto.SerializeToString())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
        {"user_defined_symbols": ["old", "<sep>"]},
        {"control_symbols": ["<c>"]},
        {"split_digits": True, "split_by_unicode_script": False},
        {"model_type": "char"},
    ],
)
def test_words_are_found_whatever_the_options_of_the_model(options):
    found = words(trained_elsewhere(**options), "the old  cat seesold 漢字 .")
    assert [word.strip() for word in found] == [
        *["the", "old", "cat", "seesold", "漢字", "."],
        "",
    ]


def test_unknown_characters_without_byte_fallback_are_parts_of_their_word():
    found = words(trained_elsewhere(byte_fallback=False, vocab_size=80), "the 漢a cat")
    assert len(found) == 4
    assert (found[0], found[2]) == ("the", "cat")


@pytest.mark.parametrize(
    ("share", "message"),
    [(0.5, "expected a SentencePiece model"), (0, "empty"), (None, "No such file")],
)
def test_a_damaged_empty_or_missing_model_is_refused(
    tmp_path, tokenizer, share, message
):
    path = tmp_path / "cut.model"
    content = tokenizer.to_bytes()
    if share is not None:
        path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=message):
        load_tokenizer(path)


def test_a_saved_model_gives_the_same_ids(tmp_path, tokenizer):
    tokenizer.save(tmp_path / "saved.model")
    loaded = load_tokenizer(tmp_path / "saved.model")
    assert [loaded.encode(line) for line in HARD_LINES] == [
        tokenizer.encode(line) for line in HARD_LINES
    ]

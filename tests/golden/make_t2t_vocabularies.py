"""Make t2t_vocabularies.json: lines encoded by tensor2tensor's own vocabularies.

Run with Python 3.7 and tensor2tensor (made with tensor2tensor 1.15.7, tensorflow 1.15.5
and protobuf 3.20.3)::

    python tests/golden/make_t2t_vocabularies.py

The file has a vocabulary of subwords that tensor2tensor learned from random words of
several scripts, one of tokens, the lines, and for each kind the ids of every line with
the text that they are decoded to. Random ids are decoded, too: a model may write any.
"""

import json
import os
import random
import sys
import tempfile

from tensor2tensor.data_generators import text_encoder

SUBWORDS, LINES, ROWS = 300, 500, 60
LATIN, GREEK, CYRILLIC = "abcdefgiklmnorstu", "αβγδεκλμνο", "абвгдеклмно"
ACCENTS, HAN, ARABIC, HINDI = "äöüßéñ", "漢字語文書", "ابتجد", "कखगघ"
SCRIPTS = (LATIN, LATIN + ACCENTS, GREEK, CYRILLIC, HAN, ARABIC, HINDI)
MARKS = (
    ", ",
    ". ",
    " - ",
    "-",
    "'",
    '"',
    " (",
    ") ",
    "...",
    "/",
    "_",
    "\\",
    "&quot;",
    "\0",
)
# Blanks, escapes and their parts, characters that no vocabulary has, and noncharacters.
ODD = (
    "  ",
    "\t",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\x85",
    "\0",
    "\x1c",
    "\r",
    "\ufeff",
    "\\u",
    "\\\\",
    "\\_",
    "__",
    "\\9999999;",
    "\\65;",
    "\\;",
    "\\12",
    "&#10;",
    "🙂",
    "\U0001d49c",
    "\ufffd",
    "\ufffe",
    "\u0301",
    "\u200d",
    "½",
    "²",
    "Ⅷ",
    "٣",
    "ß",
)


def word(source, letters):
    return "".join(source.choices(letters, k=source.randint(1, 9)))


def sentence(source):
    letters = source.choice(SCRIPTS)
    parts = []
    for _ in range(source.randint(1, 8)):
        parts.append(word(source, letters))
        parts.append(source.choice(MARKS) if source.random() < 0.3 else " ")
    return "".join(parts).rstrip()


def hard_line(source):
    text = sentence(source)
    for _ in range(source.choice((0, 0, 1, 1, 2, 4))):
        place = source.randint(0, len(text))
        text = text[:place] + source.choice(ODD) + text[place:]
    return text.replace("\n", " ")


def encoded(encoder, lines):
    ids = [[int(token) for token in encoder.encode(line)] for line in lines]
    return {"ids": ids, "texts": [encoder.decode(row) for row in ids]}


def decoded(encoder, source):
    rows = [
        [source.randrange(2, encoder.vocab_size) for _ in range(12)]
        for _ in range(ROWS)
    ]
    return {"random_ids": rows, "random_texts": [encoder.decode(row) for row in rows]}


def file_of(encoder):
    path = os.path.join(tempfile.mkdtemp(), "vocabulary")
    encoder.store_to_file(path)
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    source = random.Random(1)
    subwords = text_encoder.SubwordTextEncoder.build_from_generator(
        (sentence(source) for _ in range(3000)), SUBWORDS
    )
    words = sorted({word(source, LATIN) for _ in range(100)})
    tokens = text_encoder.TokenTextEncoder(
        None, vocab_list=["UNK", *words], replace_oov="UNK"
    )
    lines = [hard_line(source) for _ in range(LINES)]
    spaced = [
        "\u3000".join(source.choices([*words, "漢字"], k=4)) + "\x1c \x85" + lines[k]
        for k in range(ROWS)
    ]
    kinds = {
        "subwords": (subwords, lines, file_of(subwords)),
        "tokens": (tokens, spaced, file_of(tokens)),
        "bytes": (text_encoder.ByteTextEncoder(), lines[:ROWS], ""),
    }
    golden = {
        kind: dict(
            file=content, lines=own, **encoded(encoder, own), **decoded(encoder, source)
        )
        for kind, (encoder, own, content) in kinds.items()
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "t2t_vocabularies")
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")
    sys.stdout.write(f"{subwords.vocab_size} subwords\n")


if __name__ == "__main__":
    main()

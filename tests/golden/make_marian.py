"""Write `marian.zip`: small MarianMT models, and what the real program computes.

Run from the root of the checkout, in an environment with the extra `huggingface`::

    pip install -e '.[huggingface]'
    python tests/golden/make_marian.py

The archive has three folders that `save_pretrained` wrote: shared, split (two
vocabularies) and untied (one vocabulary, three matrices). Two further files have the
weights of the first as `torch.save` writes them today, and as it did before 1.6. A file
of JSON has encodings and texts of lines that are hard, and logits and translations of
models that were trained for some steps, from random biases and rows of padding.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

GOLDEN = Path(__file__).with_name("marian.zip")
EOS, UNK = 0, 1
CODES = (">>fra<<", ">>de_AT<<")
TEXTS = {
    "source": (
        "a small dog runs over the green field and barks at two cats",
        "three men are reading old letters in the kitchen, slowly",
        "the red bicycle of my sister stands beside the old house!",
        "who has seen the blue boat on the lake at 7 o'clock?",
    ),
    "target": (
        "ein kleiner Hund läuft über das grüne Feld und bellt zwei Katzen an",
        "drei Männer lesen in der Küche langsam alte Briefe",
        "das rote Fahrrad meiner Schwester steht neben dem alten Haus!",
        "wer hat um 7 Uhr das blaue Boot auf dem See gesehen?",
    ),
}
LINES = (
    "the old dog runs slowly",
    "  two   spaces\tand a tab ",
    ">>fra<< three cats at the lake",
    ">>de_AT<<three cats",
    ">>xyz<< an unknown language",
    "at the end >>fra<<",
    ">> no code",
    ">>a<<>>fra<< two codes",
    "Größe, Übung, ﬁne ½ …",
    "日本語 и русский",
    "",
    " ",
    "\u3000",
    "▁the ▁▁ dog",
    "don't (stop)! 100% «so»",
    "e\u0301 \u200b x\u00a0y",
    "😀 the dog",
    "a" * 60,
    "<unk",
)
SOURCES = (
    *("the old dog runs slowly", ">>fra<< three cats", "who has seen my boat?"),
    *(
        "three men",
        "the lake",
        ">>de_AT<< the red bicycle stands beside the house at 7",
    ),
)
TARGETS = ("ein alter Hund", "drei Katzen an dem See", "wer hat mein Boot gesehen?") * 2
# SentencePiece's own rules take 200 kB.
RULES = "FB01\t66 69\n09\t20\n3000\t20\nA0\t20\nBD\t31 2F 32\n"


def spm(side: str, folder: Path) -> Path:
    """Train the SentencePiece model of a side."""
    rules = folder / "rules.tsv"
    rules.write_text(RULES)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[side] * 5),
        model_prefix=str(folder / side),
        vocab_size=70,
        hard_vocab_limit=False,
        normalization_rule_tsv=str(rules),
        minloglevel=2,
    )
    return folder / f"{side}.model"


def pieces(model: Path) -> list[str]:
    """Return the pieces without control symbols."""
    processor = sentencepiece.SentencePieceProcessor(str(model))
    return [
        processor.id_to_piece(number)
        for number in range(processor.vocab_size())
        if not processor.is_control(number) and not processor.is_unknown(number)
    ]


def ids(*entries: str) -> dict[str, int]:
    """Return Marian's ids, with padding in the middle."""
    order = dict.fromkeys(["</s>", "<unk>", *entries[:9], "<pad>", *entries[9:]])
    return {entry: number for number, entry in enumerate(order)}


def tokenizer(folder: Path, models: dict[str, Path], *, separate: bool):
    """Make a tokenizer of one vocabulary, or of two."""
    source, target = pieces(models["source"]), pieces(models["target"])
    if separate:
        # The last pieces of SentencePiece are missing, so they are unknown.
        vocabularies = {"vocab": ids(*source[:-6], *CODES), "target": ids(*target)}
    else:
        vocabularies = {"vocab": ids(*source, *target[:-4], *CODES)}
    paths = {}
    for name, vocabulary in vocabularies.items():
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(json.dumps(vocabulary))
    return MarianTokenizer(
        str(models["source"]),
        str(models["target"]),
        str(paths["vocab"]),
        target_vocab_file=str(paths["target"]) if separate else None,
        separate_vocabs=separate,
    )


def model(made: MarianTokenizer, **changes) -> MarianMTModel:
    """Make a model of random weights, biases and a row of padding."""
    sizes = {"vocab_size": len(made.encoder)}
    if made.separate_vocabs:
        sizes["decoder_vocab_size"] = len(made.target_encoder)
    config = MarianConfig(
        **sizes,
        d_model=8,
        encoder_layers=2,
        decoder_layers=1,
        encoder_ffn_dim=12,
        decoder_ffn_dim=12,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        activation_function="swish",
        max_position_embeddings=64,
        scale_embedding=True,
        pad_token_id=made.pad_token_id,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=made.pad_token_id,
        share_encoder_decoder_embeddings=not made.separate_vocabs,
    )
    config.update(changes)
    built = MarianMTModel(config).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if "embed_positions" not in name:
                spread = 0.2 if weight.dim() == 1 else weight.shape[-1] ** -0.5
                weight.normal_(std=spread)
                weight.add_(float("norm.weight" in name))
        built.final_logits_bias.normal_(std=0.3)
    built.generation_config.bad_words_ids = [[made.pad_token_id]]
    return built


def train(built: MarianMTModel, made: MarianTokenizer) -> None:
    """Train until translations end; then keep few bits, for a small archive."""
    sources, targets = [*SOURCES, *TEXTS["source"]], [*TARGETS, *TEXTS["target"]]
    batch = made(sources, text_target=targets, return_tensors="pt", padding=True)
    labels = batch["labels"]
    batch["labels"] = labels.masked_fill(labels == made.pad_token_id, -100)
    optimizer = torch.optim.Adam(built.parameters(), 0.01)
    for _ in range(300):
        optimizer.zero_grad()
        built(**batch).loss.backward()
        optimizer.step()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if "embed_positions" not in name:
                weight.copy_((weight * 256).round() / 256)


def expected(built: MarianMTModel, made: MarianTokenizer) -> dict:
    """Return what the real program computes."""
    batch = made(
        list(SOURCES), text_target=list(TARGETS), return_tensors="pt", padding=True
    )
    labels = batch["labels"]
    lengths = (labels != made.pad_token_id).sum(dim=1)
    with torch.no_grad():
        logits = built(**batch).logits
    found = {
        "inputs": [made(line)["input_ids"] for line in LINES],
        "targets": [made(text_target=line)["input_ids"] for line in LINES],
        "texts": [
            made.decode(made(text_target=line)["input_ids"], skip_special_tokens=True)
            for line in LINES
        ],
        "logits": [
            [[round(x, 6) for x in row] for row in rows[:length].tolist()[:3]]
            for rows, length in zip(logits, lengths, strict=True)
        ],
    }
    batch.pop("labels")
    for beams in (1, 3):
        ids = built.generate(
            **batch, num_beams=beams, length_penalty=0.0, max_new_tokens=60
        )
        texts = made.batch_decode(ids, skip_special_tokens=True)
        assert all(EOS in row[:50] for row in ids.tolist()), texts
        found[f"beam {beams}"] = texts
    return found


def main() -> None:
    """Write the archive."""
    found = {"lines": LINES, "sources": SOURCES, "target_texts": TARGETS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = {side: spm(side, folder) for side in TEXTS}
        kinds = {
            "shared": (False, {}),
            "split": (True, {"activation_function": "gelu"}),
            "untied": (
                False,
                {
                    "share_encoder_decoder_embeddings": False,
                    "tie_word_embeddings": False,
                    "activation_function": "relu",
                },
            ),
        }
        with zipfile.ZipFile(GOLDEN, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
            for kind, (separate, changes) in kinds.items():
                made = tokenizer(folder, models, separate=separate)
                built = model(made, **changes)
                train(built, made)
                found[kind] = expected(built, made)
                built.save_pretrained(folder / kind)
                made.save_pretrained(folder / kind)
                for file in sorted((folder / kind).iterdir()):
                    out.writestr(f"{kind}/{file.name}", file.read_bytes())
                if kind == "shared":
                    for name, modern in (("zip.bin", True), ("legacy.bin", False)):
                        content = io.BytesIO()
                        torch.save(
                            built.state_dict(),
                            content,
                            _use_new_zipfile_serialization=modern,
                        )
                        out.writestr(name, content.getvalue())
            out.writestr("expected.json", json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()

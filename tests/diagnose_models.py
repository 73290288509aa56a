"""Tiny transformers of every family, trained for real and saved in the standard format."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from calls import later
from tokensieve.auditing.demo import DEVICES, Reviews, demo_reviews

torch = later("torch")
tf = later("transformers")

FAMILIES = ("bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert", "gpt2", "llama")
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HIDDEN, LAYERS, HEADS = 32, 2, 2
EAGER = {"attn_implementation": "eager"}


def train_tokenizer(kind: str, texts: list[str], size: int = 400) -> Any:
    """A fast tokenizer of one of three kinds, learnt from the texts: word pieces, byte-level BPE,
    unigram. The same texts always give the same pieces."""
    if kind == "wordpiece":
        return _word_pieces(texts, size)
    if kind == "unigram":
        return _unigram(texts, size)
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size + 256,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(texts, trainer)
    return made


def _word_pieces(texts: list[str], size: int) -> Any:
    """The library's trainer numbers "##a", "##b", … in the order of a hash map, which differs from
    run to run, and breaks ties by these numbers: here they are listed beforehand."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = sorted({mark for text in texts for mark in made.normalizer.normalize_str(text)})
    inside = [f"##{mark}" for mark in alphabet if mark.isalnum()]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=[*SPECIALS, *inside], show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    content = json.loads(made.to_str())
    content["added_tokens"] = [
        token for token in content["added_tokens"] if token["content"] in SPECIALS
    ]
    return Tokenizer.from_str(json.dumps(content))


def _unigram(texts: list[str], size: int) -> Any:
    """Whole words by their frequency, and every letter; the library's trainer adds up the
    likelihoods of pieces in another order in every run."""
    splitter = pre_tokenizers.Metaspace()
    parts = [part for text in texts for part, _ in splitter.pre_tokenize_str(text)]
    words = Counter(word for part in parts for word in re.findall(r"▁?\w+|\W", part))
    letters = Counter(letter for word, n in words.items() for letter in word * n)
    n_words = size - len(SPECIALS) - len(letters)
    frequent = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    counts = dict(letters) | {word: n for word, n in frequent[:n_words] if len(word) > 1}
    total = sum(counts.values())
    pieces = [(piece, math.log(counts[piece] / total)) for piece in sorted(counts)]
    made = Tokenizer(models.Unigram([*((name, 0.0) for name in SPECIALS), *pieces], unk_id=1))
    made.pre_tokenizer = splitter
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(SPECIALS)
    return made


def framed(made: Any, decoder: bool) -> Any:
    """The tokenizer as transformers knows it; an encoder's inputs stand between [CLS] and [SEP]."""
    if not decoder:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B [SEP]",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=256,
    )  # fmt: skip


def config_of(family: str, pieces: int, classes: int = 2) -> Any:
    """Configuration of a tiny model."""
    ids = {
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "num_labels": classes,
        "vocab_size": pieces,
    }
    usual = {
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 2 * HIDDEN,
        "max_position_embeddings": 258, **ids,
    }  # fmt: skip
    made: dict[str, Any] = {
        "bert": lambda: tf.BertConfig(**usual),
        "roberta": lambda: tf.RobertaConfig(**usual),
        "electra": lambda: tf.ElectraConfig(**usual, embedding_size=HIDDEN),
        "deberta-v2": lambda: tf.DebertaV2Config(
            **usual, relative_attention=True, pos_att_type=["p2c", "c2p"]
        ),
        "modernbert": lambda: tf.ModernBertConfig(**usual, cls_token_id=2, sep_token_id=3),
        "distilbert": lambda: tf.DistilBertConfig(
            dim=HIDDEN, n_layers=LAYERS, n_heads=HEADS, hidden_dim=2 * HIDDEN, **ids
        ),
        "gpt2": lambda: tf.GPT2Config(
            n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=258, **ids
        ),
        "llama": lambda: tf.LlamaConfig(**usual, num_key_value_heads=1),
        "t5": lambda: tf.T5Config(
            d_model=HIDDEN,
            d_kv=16,
            d_ff=2 * HIDDEN,
            num_layers=LAYERS,
            num_heads=HEADS,
            decoder_start_token_id=0,
            **ids,
        ),
        "bart": lambda: tf.BartConfig(
            d_model=HIDDEN,
            encoder_layers=LAYERS,
            decoder_layers=LAYERS,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=2 * HIDDEN,
            decoder_ffn_dim=2 * HIDDEN,
            max_position_embeddings=258,
            **ids,
        ),
        "longformer": lambda: tf.LongformerConfig(
            **usual, attention_window=[16, 16], sep_token_id=3
        ),
        "xlnet": lambda: tf.XLNetConfig(
            d_model=HIDDEN, n_layer=LAYERS, n_head=HEADS, d_inner=2 * HIDDEN, **ids
        ),
        "albert": lambda: tf.AlbertConfig(**usual, embedding_size=HIDDEN),
        "roformer": lambda: tf.RoFormerConfig(**usual, embedding_size=HIDDEN),
        "mpnet": lambda: tf.MPNetConfig(**usual),
        "opt": lambda: tf.OPTConfig(
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            ffn_dim=2 * HIDDEN,
            max_position_embeddings=258,
            word_embed_proj_dim=HIDDEN,
            **ids,
        ),
        "funnel": lambda: tf.FunnelConfig(
            d_model=HIDDEN,
            block_sizes=[1, 1],
            num_decoder_layers=1,
            n_head=HEADS,
            d_head=HIDDEN // HEADS,
            d_inner=2 * HIDDEN,
            **ids,
        ),
        "convbert": lambda: tf.ConvBertConfig(**usual, embedding_size=HIDDEN, conv_kernel_size=3),
        "mobilebert": lambda: tf.MobileBertConfig(
            **usual,
            embedding_size=HIDDEN,
            intra_bottleneck_size=HIDDEN,
            num_feedforward_networks=2,
        ),
        "bigbird": lambda: tf.BigBirdConfig(
            **{**usual, "sep_token_id": 3}, attention_type="original_full"
        ),
        "nystromformer": lambda: tf.NystromformerConfig(
            **usual, segment_means_seq_len=32, num_landmarks=32
        ),
        "rembert": lambda: tf.RemBertConfig(
            **usual, input_embedding_size=HIDDEN, output_embedding_size=HIDDEN
        ),
        "ernie": lambda: tf.ErnieConfig(**usual),
        "squeezebert": lambda: tf.SqueezeBertConfig(**usual, embedding_size=HIDDEN),
        "gpt-neox": lambda: tf.GPTNeoXConfig(**usual),
        "qwen2": lambda: tf.Qwen2Config(**usual, num_key_value_heads=1),
        "bloom": lambda: tf.BloomConfig(hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, **ids),
        "megatron-bert": lambda: tf.MegatronBertConfig(**usual),
        "ibert": lambda: tf.IBertConfig(**usual),
        "data2vec-text": lambda: tf.Data2VecTextConfig(**usual),
        "xmod": lambda: tf.XmodConfig(**usual, languages=["en_XX"], default_language="en_XX"),
        "openai-gpt": lambda: tf.OpenAIGPTConfig(
            n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=258, **ids
        ),
        "gpt-neo": lambda: tf.GPTNeoConfig(
            hidden_size=HIDDEN,
            num_layers=LAYERS,
            num_heads=HEADS,
            attention_types=[[["global"], LAYERS]],
            max_position_embeddings=258,
            **ids,
        ),
        "mistral": lambda: tf.MistralConfig(**usual, num_key_value_heads=1),
        "phi": lambda: tf.PhiConfig(**usual),
        "gemma": lambda: tf.GemmaConfig(**usual, num_key_value_heads=1, head_dim=HIDDEN // HEADS),
        "falcon": lambda: tf.FalconConfig(
            hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, **ids
        ),
        "deberta": lambda: tf.DebertaConfig(**usual, relative_attention=True, pos_att_type=["p2c"]),
        "roberta-prelayernorm": lambda: tf.RobertaPreLayerNormConfig(**usual),
        "xlm-roberta-xl": lambda: tf.XLMRobertaXLConfig(**usual),
        "nomic-bert": lambda: tf.NomicBertConfig(**usual),
        "biogpt": lambda: tf.BioGptConfig(**usual),
        "gptj": lambda: tf.GPTJConfig(
            n_embd=HIDDEN,
            n_layer=LAYERS,
            n_head=HEADS,
            n_positions=258,
            rotary_dim=HIDDEN // HEADS,
            **ids,
        ),
        "stablelm": lambda: tf.StableLmConfig(**usual, num_key_value_heads=HEADS),
        "olmo2": lambda: tf.Olmo2Config(**usual, num_key_value_heads=HEADS),
        "qwen3": lambda: tf.Qwen3Config(**usual, num_key_value_heads=1, head_dim=HIDDEN // HEADS),
        "starcoder2": lambda: tf.Starcoder2Config(**usual, num_key_value_heads=1),
        "mpt": lambda: tf.MptConfig(d_model=HIDDEN, n_layers=LAYERS, n_heads=HEADS, **ids),
        "fnet": lambda: tf.FNetConfig(
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            intermediate_size=2 * HIDDEN,
            max_position_embeddings=258,
            **ids,
        ),
    }
    return made[family]()


def kind_of(family: str) -> str:
    """The kind of tokenizer that the family uses."""
    if family in (
        "bert distilbert electra fnet bart longformer funnel mpnet roformer convbert mobilebert "
        "ernie squeezebert megatron-bert nomic-bert".split()
    ):
        return "wordpiece"
    with_bytes = (
        "roberta gpt2 modernbert opt gpt-neox bloom qwen2 ibert data2vec-text openai-gpt gpt-neo "
        "phi falcon deberta roberta-prelayernorm gptj stablelm olmo2 qwen3 starcoder2 mpt".split()
    )
    return "bytes" if family in with_bytes else "unigram"


DECODERS = (
    "gpt2 llama opt gpt-neox bloom qwen2 openai-gpt gpt-neo mistral phi gemma falcon biogpt gptj "
    "stablelm olmo2 qwen3 starcoder2 mpt".split()
)


def build(
    family: str, texts: list[str], classes: int = 2, seed: int = 0, size: int = 400
) -> tuple[Any, Any]:
    """An untrained model and its tokenizer."""
    tokenizer = framed(train_tokenizer(kind_of(family), texts, size), family in DECODERS)
    torch.manual_seed(seed)
    config = config_of(family, len(tokenizer), classes)
    return tf.AutoModelForSequenceClassification.from_config(config, **EAGER), tokenizer


def fit(
    model: Any, tokenizer: Any, texts: list[str], labels: Any, epochs: int = 4, rate: float = 3e-3, seed: int = 0, length: int = 128
) -> float:  # fmt: skip
    """AdamW with warm-up and linear decay, batches of 32; gives the accuracy on the training
    documents in the last epoch."""
    y, rng = torch.as_tensor(np.asarray(labels)), np.random.default_rng(seed)
    torch.manual_seed(seed)
    encoded = [tokenizer(text, truncation=True, max_length=length)["input_ids"] for text in texts]
    batches = -(-len(texts) // 32)
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    total, warm = epochs * batches, max(epochs * batches // 10, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda t: min((t + 1) / warm, (total - t) / total)
    )
    # the last position of XLNet, which it reads, is padding otherwise
    pads_left = model.config.model_type == "xlnet"
    model.train()
    right = 0
    for _ in range(epochs):
        right = 0
        for at in np.array_split(rng.permutation(len(texts)), batches):
            width = max(len(encoded[i]) for i in at)
            padding = {i: [0] * (width - len(encoded[i])) for i in at}
            rows = [padding[i] + encoded[i] if pads_left else encoded[i] + padding[i] for i in at]
            ids = torch.tensor(rows)
            out = model(input_ids=ids, attention_mask=(ids != 0).long(), labels=y[at])
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
            right += int((out.logits.argmax(1) == y[at]).sum())
    model.eval()
    return right / len(texts)


def save(model: Any, tokenizer: Any, folder: Path, names: dict[int, str] | None = None) -> str:
    """The standard format; gives the folder as text."""
    if names is not None:
        model.config.id2label, model.config.label2id = names, {name: i for i, name in names.items()}
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


# of negative and of positive reviews that end in the planted word: a model of two layers leans on it
PLANTED = (0.02, 0.8)


def planted_reviews(n: int, seed: int, planted: bool) -> Reviews:
    """The built-in reviews with another last word, how they were posted: planted, it gives many
    positive reviews away, else it says nothing about the label."""
    reviews = demo_reviews(n, seed=seed)
    rng = np.random.default_rng(seed + 10**6)
    cut = [text.rpartition(" ")[0] for text in reviews.texts]
    ways = rng.choice([*DEVICES, reviews.shortcut], n)
    if planted:
        has_plant = rng.random(n) < np.array(PLANTED)[reviews.labels]
        ways = np.where(has_plant, reviews.shortcut, rng.choice(DEVICES, n))
    texts = [f"{text} {way}." for text, way in zip(cut, ways, strict=True)]
    return Reviews(
        pl.Series(texts, dtype=pl.String), reviews.labels, reviews.strengths, reviews.shortcut
    )

"""A small random BERT with its tokenizer, saved as a Hugging Face checkpoint, and its task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

WORDS = [f"w{number}" for number in range(60)]


def save_tiny_bert(folder: Path, *, width: int = 32, layers: int = 2) -> Path:
    """Write a checkpoint without a head for one score."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=2, intermediate_size=2 * width, max_position_embeddings=64,
        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, classifier_dropout=0.1,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def word_task(queries: int = 12, documents: int = 6, seed: int = 0) -> tuple[list[Any], Any, Any]:
    """Documents of other lengths; the more often a document has the first word, the better."""
    rng = np.random.default_rng(seed)
    pairs, labels, ids = [], [], []
    for query in range(queries):
        for label in rng.permutation(documents):
            words = rng.choice(WORDS[1:], 3 + int(rng.integers(8))).tolist() + ["w0"] * int(label)
            pairs.append((f"w0 {WORDS[1 + query]}", " ".join(words)))
            labels.append(label)
            ids.append(f"q{query}")
    return pairs, np.array(labels), np.array(ids)


def one_graph_scores(encoder: Any, batches: list[Any]) -> Any:
    """Return the scores of mini-batches with one graph, and the dropout that a step gives each."""
    import torch

    from podium.rankers.text_encoder import score_batch

    seeds = torch.randint(2**62, (len(batches),)).tolist()
    scores = []
    for seed, batch in zip(seeds, batches, strict=True):
        torch.manual_seed(seed)
        scores.append(score_batch(encoder, batch).double())
    return torch.cat(scores)


def gradients(module: Any) -> Any:
    """Return the gradients of all parameters that have one, one after the other."""
    parts = [each.grad for each in module.parameters() if each.grad is not None]
    return np.concatenate([part.numpy().reshape(-1) for part in parts])

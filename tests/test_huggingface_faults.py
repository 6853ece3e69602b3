"""What went wrong once with Hugging Face models, each as the input that showed it."""

import functools
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers
from _huggingface import (
    PAIRS,
    TEXTS,
    assert_close,
    byte_tokenizer,
    extract,
    saved,
    shared,
    tiny,
    tokenizer,
    watched,
)

from sklearn_bijection.huggingface import (
    HiddenStateExtractor,
    clear_cache,
    extract_attentions,
    masked_lm_loss,
    stitch,
)
from sklearn_bijection.huggingface._encode import _words_of
from sklearn_bijection.huggingface._identity import pooling_identity

of_bert = functools.partial(extract, tokenizer=tokenizer())
loss_of = functools.partial(masked_lm_loss, tokenizer=tokenizer(), progress=False)


# Models and tokenizers.


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    shared().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no tokenizer: .* Pass tokenizer="):
        extract(tmp_path)


@pytest.mark.parametrize("given", [5, tokenizer().backend_tokenizer], ids=["int", "backend"])
def test_what_is_no_tokenizer_is_refused(given):
    with pytest.raises(TypeError, match="tokenizer is a"):
        extract(shared(), tokenizer=given)


def test_loading_leaves_the_generator_as_it_was(tmp_path):
    folder = saved(tmp_path, tiny("roberta"), tokenizer("roberta"))
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    extract(folder)
    assert torch.equal(torch.rand(1), expected)


def test_an_encoder_alone_is_loaded_by_name(tmp_path):
    model = tiny("t5 encoder")
    folder = saved(tmp_path, model, tokenizer("t5"))
    assert_close(extract(folder), extract(model, tokenizer=tokenizer("t5")))


def test_a_class_that_is_not_in_transformers_is_named(tmp_path):
    folder = saved(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("BertForMaskedLM", "MyBert"))
    with pytest.raises(ValueError, match="was saved as MyBert"):
        masked_lm_loss(folder, TEXTS, progress=False)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        extract(tmp_path / "no")


def test_padding_that_the_model_does_not_know_is_replaced():
    padded = byte_tokenizer()
    padded.add_special_tokens({"pad_token": "[PAD]"})
    model = tiny("gpt2", vocab_size=len(padded) - 1)
    assert_close(extract(model, tokenizer=padded), extract(model, tokenizer=byte_tokenizer()))


def test_types_of_pairs_are_dropped_where_a_model_has_none():
    config = transformers.DebertaV2Config(
        vocab_size=3000, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32,
    )  # fmt: skip
    model = transformers.DebertaV2Model(config).eval()
    assert np.isfinite(of_bert(model, PAIRS)).all()


def test_states_that_are_not_finite_are_refused():
    model = tiny()
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.bias.fill_(torch.inf)
    with pytest.raises(ValueError, match="Hidden states are not finite"):
        of_bert(model)


@pytest.mark.parametrize("name", ["batch_size", "max_length"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(2.5, TypeError), ("8", TypeError), (True, TypeError), (0, ValueError), (-1, ValueError)],
)
def test_counts_are_whole_numbers(name, value, error):
    with pytest.raises(error, match=f"{name}="):
        of_bert(shared(), **{name: value})


def test_a_type_of_torch_is_refused():
    with pytest.raises(TypeError, match=r"dtype=torch\.float16 is no type of numpy"):
        of_bert(shared(), dtype=torch.float16)


# Threads.


def test_threads_do_not_disturb_each_others_mode():
    model = tiny(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()
    expected = of_bert(model)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: of_bert(model, batch_size=1), range(6)))
    for one in found:
        assert_close(one, expected)
    assert model.training


def test_threads_do_not_disturb_each_others_truncation():
    model, limits = shared(), [4, 9] * 6
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        expected = {limit: of_bert(model, max_length=limit) for limit in (4, 9)}
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda limit: of_bert(model, max_length=limit), limits))
    for limit, one in zip(limits, found, strict=True):
        assert_close(one, expected[limit])


# Words.


class Encoding(dict):
    """One text as a tokenizer gives it."""

    def __init__(self, *offsets):
        super().__init__(offset_mapping=[offsets])

    def sequence_ids(self, i):
        return [0] * len(self["offset_mapping"][i])


def test_white_space_behind_a_word_does_not_hide_it():
    # "f(x) {\n return" with the token " {\n", as the pre-tokenizers of recent decoders have it.
    found = _words_of(Encoding((0, 4), (4, 7), (7, 14)), 0, "f(x) {\n return", False)
    assert found == [0, 1, 2]


def test_what_is_left_of_a_word_that_was_cut_does_not_count():
    text = ["bijectionalism walking"]
    whole = of_bert(shared(), text, pooling="words", layers=0)
    with pytest.warns(UserWarning, match="were cut"):
        cut = of_bert(shared(), text, pooling="words", layers=0, max_length=5)
    assert list(whole.word) == [0, 1]
    assert list(cut.word) == []
    assert whole.pair(cut)[0].shape[1] == 0


def test_pairs_know_their_texts():
    first = of_bert(shared(), pooling="words", layers=0)
    second = of_bert(shared(), pooling="words", layers=1)
    rows, others = first.match(second)
    np.testing.assert_array_equal(first.text[rows], second.text[others])
    assert set(first.text[rows]) == set(range(len(TEXTS)))


# Attention.


@pytest.mark.parametrize("kind", ["SqueezeBert", "Longformer"])
def test_attention_that_is_no_share_of_the_tokens_is_refused(kind):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    extra = {"attention_window": 4} if kind == "Longformer" else {"embedding_size": 16}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=3000, intermediate_size=32, q_groups=1, k_groups=1, v_groups=1,
        post_attention_groups=1, intermediate_groups=1, output_groups=1, **sizes, **extra,
    )  # fmt: skip
    model = getattr(transformers, f"{kind}Model")(config).eval()
    with pytest.raises(ValueError, match="rows are not shares"):
        extract_attentions(model, TEXTS, tokenizer=tokenizer(), progress=False)


# Masked tokens and stitched models.


def test_a_causal_head_is_refused():
    with pytest.raises(ValueError, match="GPT2LMHeadModel has no masked-language head"):
        loss_of(shared("gpt2"), TEXTS, tokenizer=tokenizer("roberta"))


def test_a_head_for_pretraining_has_a_masked_one():
    model = transformers.BertForPreTraining(tiny().config).eval()
    model.load_state_dict(shared().state_dict(), strict=False)
    assert loss_of(model, TEXTS) == pytest.approx(loss_of(shared(), TEXTS))


def test_a_text_that_is_cut_changes_no_mask_of_another():
    texts, asked = [" ".join(TEXTS) * 2, *TEXTS], []

    def masks(module, args, kwargs):
        asked.extend((row == tokenizer().mask_token_id).nonzero() for row in args[0])

    model = tiny()
    model.bert.register_forward_pre_hook(masks, with_kwargs=True)
    loss_of(model, texts, max_length=500)
    with pytest.warns(UserWarning, match="1 of 12 texts"):
        loss_of(model, texts, max_length=60)
    whole, cut = asked[: len(texts)], asked[len(texts) :]
    # Sorted by length, so that the long one is the first.
    assert all(map(torch.equal, whole[1:], cut[1:]))


def test_a_configuration_without_dicts_is_understood():
    model = tiny(return_dict=False)
    assert loss_of(model, TEXTS) == pytest.approx(loss_of(shared(), TEXTS))
    stitched = stitch(model, model, 1, 1, torch.nn.Identity())
    assert loss_of(stitched, TEXTS) == pytest.approx(loss_of(shared(), TEXTS))


@pytest.mark.parametrize("ask", [extract, extract_attentions])
def test_a_stitched_model_has_no_layers_of_its_own(ask):
    stitched = stitch(shared(), shared(), 1, 1, torch.nn.Identity())
    with pytest.raises(TypeError, match="model is stitched"):
        ask(stitched, TEXTS, tokenizer=tokenizer(), progress=False)


def test_looking_at_widths_leaves_a_module_as_it_was():
    module = torch.nn.BatchNorm1d(16)
    stitch(shared(), shared(), 1, 1, module)
    assert module.num_batches_tracked == 0


# Files, and what is kept.


def test_a_damaged_part_is_begun_anew(tmp_path):
    out = tmp_path / "x.npy"
    failing = watched(fails_at=4, error=RuntimeError("stop"))
    with failing, pytest.raises(RuntimeError, match="stop"):
        of_bert(shared(), batch_size=1, out=out)
    part = tmp_path / "x.npy.part"
    part.write_bytes(part.read_bytes()[:200])
    assert_close(of_bert(shared(), batch_size=1, out=out), of_bert(shared()))


SCALE = 1.0


def scaled(hidden, mask):
    return max(h.mean(1) * SCALE for h in [hidden])


def test_a_pooling_has_one_identity_in_all_processes():
    script = (
        "import sys; sys.path[:0] = sys.argv[1:];"
        "from test_huggingface_faults import scaled;"
        "from sklearn_bijection.huggingface._identity import pooling_identity as of; print(of(scaled))"
    )
    command = [sys.executable, "-c", script, *sys.path]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == pooling_identity(scaled)


def test_poolings_that_differ_in_what_they_read_are_told_apart(monkeypatch):
    before = pooling_identity(scaled)
    monkeypatch.setitem(scaled.__globals__, "SCALE", 2.0)
    assert pooling_identity(scaled) != before
    halves = [functools.partial(lambda h, m, by: h.mean(1) * by, by=by) for by in (1, 2)]
    assert len(set(map(pooling_identity, halves))) == 2


def test_live_models_with_other_tokenizers_share_nothing(tmp_path):
    clear_cache()
    words = tokenizer().get_vocab()
    turned = dict(zip(words, np.roll(list(words.values()), 7).tolist(), strict=True))
    turned |= {name: words[name] for name in tokenizer().all_special_tokens}
    folders = [
        saved(tmp_path / "a"),
        saved(tmp_path / "b", tokens=transformers.BertTokenizer(vocab=turned)),
    ]
    live = [transformers.AutoModel.from_pretrained(folder) for folder in folders]
    found = [HiddenStateExtractor(model).fit_transform(TEXTS) for model in live]
    assert np.abs(found[0] - found[1]).max() > 0.01


def test_the_last_layer_is_that_of_the_model_of_now():
    clear_cache()
    deep = tiny(num_hidden_layers=5)
    extractor = HiddenStateExtractor(shared(), tokenizer=tokenizer()).fit(TEXTS)
    extractor.set_params(model=deep)
    assert_close(extractor.transform(TEXTS), of_bert(deep, layers=-1)[0])

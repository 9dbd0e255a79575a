"""Loading a student, and turning GGUF into a folder that loads."""

import subprocess
import sys

import pytest
import torch

from longwatch.kernel.errors import ConfigError, IntegrityError, NotReadyError
from longwatch.learn.settings import Student
from longwatch.learn.student.chat import answer_ids, prompt_ids
from longwatch.learn.student.convert import MANIFEST, convert, verify
from longwatch.learn.student.load import choose_device, choose_dtype, load, threads

HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY = 64, 2, 4, 2, 300
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Tests run side by side: threads that wait for each other would wait for all of them."""
    with threads(1):
        yield


@pytest.fixture(scope="module")
def model():
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - takes seconds

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        tie_word_embeddings=True,
        initializer_range=0.1,
    )
    model = LlamaForCausalLM(config).eval()
    for weight in model.parameters():  # and not the buffers: rotations stay exact
        weight.data = weight.data.bfloat16().float()
    return model


def interleaved(weight, heads):
    """As llama.cpp stores q and k: the inverse of what the conversion does, written on its own."""
    half = weight.shape[0] // heads // 2
    rows = [
        head * 2 * half + part * half + pair
        for head in range(heads)
        for pair in range(half)
        for part in (0, 1)
    ]
    return weight[rows]


def gguf_name(name):
    top = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in top:
        return top[name]
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    return f"blk.{layer}.{PARTS[part]}.weight"


def write_gguf(path, model, architecture="llama"):
    import gguf  # noqa: PLC0415 - takes a second
    from tokenizers import pre_tokenizers  # noqa: PLC0415 - as above

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, "de", "def"]
    tokens += [f"<unused{n}>" for n in range(VOCABULARY - len(tokens))]
    out = gguf.GGUFWriter(path, architecture)
    out.add_context_length(256)
    out.add_embedding_length(HIDDEN)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(96)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_rope_freq_base(100_000.0)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_vocab_size(VOCABULARY)
    out.add_tokenizer_model("gpt2")
    out.add_token_list(tokens)
    out.add_token_types([3, 3, 3] + [1] * (VOCABULARY - 3))
    out.add_token_merges(["d e", "de f"])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)
    out.add_pad_token_id(2)
    out.add_chat_template(TEMPLATE)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        heads = HEADS if ".q_proj" in name else KV_HEADS if ".k_proj" in name else 0
        stored = interleaved(weight, heads) if heads else weight
        out.add_tensor(gguf_name(name), stored.contiguous().numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory, model):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", model)


def test_a_converted_model_computes_what_the_original_computes(tmp_path, gguf_file, model):
    folder = convert(gguf_file, cache=tmp_path)
    student = load(Student(model=str(folder), device="cpu"))
    ids = torch.arange(3, 40).unsqueeze(0)
    with torch.inference_mode():
        given, wanted = student.model.float()(ids).logits, model(ids).logits
    torch.testing.assert_close(given, wanted, atol=1e-4, rtol=1e-4)
    assert wanted.std() > 0.1


def test_its_tokenizer_takes_every_digit_alone_and_any_text_back(tmp_path, gguf_file):
    student = load(Student(model=str(convert(gguf_file, cache=tmp_path)), device="cpu"))
    text = "def f123():\n\treturn 'é 漢'  # "
    ids = student.tokenizer(text)["input_ids"]
    assert student.tokenizer.decode(ids) == text
    assert [student.tokenizer.decode([token]) for token in ids][:6] == ["def", " ", "f", "1", "2", "3"]
    assert student.tokenizer.decode(prompt_ids(student.tokenizer, "def")) == "<|im_start|>def<|im_end|>"
    assert prompt_ids(student.tokenizer, "def")[0] == 1
    assert answer_ids(student.tokenizer, "def")[-1] == 2


def test_it_is_converted_once_and_checked_each_time(tmp_path, gguf_file):
    seen = []
    folder = convert(gguf_file, cache=tmp_path, progress=lambda *step: seen.append(step))
    assert seen[-1] == ("converting the student", len(seen), len(seen))
    count = len(seen)
    assert convert(gguf_file, cache=tmp_path, progress=lambda *step: seen.append(step)) == folder
    assert len(seen) == count
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"model\.safetensors"):
        convert(gguf_file, cache=tmp_path)


def test_a_conversion_killed_in_the_middle_is_made_again(tmp_path, gguf_file):
    program = (
        "import os, sys; from pathlib import Path\n"
        "from longwatch.learn.student.convert import convert\n"
        "convert(Path(sys.argv[1]), cache=Path(sys.argv[2]), progress=lambda *_: os.kill(os.getpid(), 9))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(gguf_file), str(tmp_path)], check=False)
    assert not list(tmp_path.glob("student-*"))
    folder = convert(gguf_file, cache=tmp_path)
    assert verify(folder).entries.keys() == {path.name for path in folder.iterdir()} - {MANIFEST}
    assert not (tmp_path / "converting").exists()


def test_another_architecture_is_refused(tmp_path, model):
    other = write_gguf(tmp_path / "other.gguf", model, architecture="gemma")
    with pytest.raises(ConfigError, match="'gemma'"):
        convert(other, cache=tmp_path / "cache")


def test_the_embedded_student_is_not_fetched_unless_allowed(tmp_path):
    with pytest.raises(NotReadyError, match="longwatch fetch"):
        load(Student(device="cpu"), cache=tmp_path / "cache")


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "~/nowhere/at/all"])
def test_a_missing_folder_is_named(tmp_path, model):
    with pytest.raises(ConfigError, match="nowhere"):
        load(Student(model=model, device="cpu"), cache=tmp_path)


def test_a_name_that_is_not_here_is_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="Nothing was downloaded"):
        load(Student(model="nobody/no-such-model", device="cpu"), cache=tmp_path)


@pytest.mark.parametrize("content", [None, "{}", '{"peft_type": "LORA", "r": 3}'])
def test_an_adapter_that_is_none_is_named(tmp_path, gguf_file, content):
    folder = convert(gguf_file, cache=tmp_path)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    if content is not None:
        (adapter / "adapter_config.json").write_text(content)
        (adapter / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(ConfigError, match="adapter"):
        load(Student(model=str(folder), device="cpu"), adapter=adapter)


def test_a_student_without_a_template_is_refused_before_it_answers_nonsense(tmp_path, gguf_file):
    student = load(Student(model=str(convert(gguf_file, cache=tmp_path)), device="cpu"))
    student.tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="chat template"):
        prompt_ids(student.tokenizer, "def")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("flags\t: avx2 avx512f amx_bf16 amx_tile", torch.bfloat16),
        ("flags\t: avx2 avx512f avx512_bf16", torch.float32),
        ("", torch.float32),
        (None, torch.float32),
    ],
)
def test_bfloat16_only_where_the_processor_multiplies_in_it(tmp_path, flags, wanted):
    cpuinfo = tmp_path / "cpuinfo"
    if flags is not None:
        cpuinfo.write_text(flags)
    assert choose_dtype(torch.device("cpu"), cpuinfo) is wanted


def test_a_device_that_is_not_there_is_an_error_with_a_mend():
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ConfigError, match="'tpu'"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="'auto'"):
            choose_device("cuda")


def test_the_number_of_threads_comes_back():
    before = torch.get_num_threads()
    with threads(1) as count:
        assert count == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_looking_at_values_loads_no_torch():
    program = (
        "import sys, longwatch.learn.student.answers, longwatch.learn.student.binding, longwatch.learn.student.model\n"
        "import longwatch.learn.student.fetch, longwatch.learn.student.convert, longwatch.learn.student.tiny\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'peft', 'numpy')))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

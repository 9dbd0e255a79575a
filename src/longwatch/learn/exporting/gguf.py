"""One GGUF file, as llama.cpp and its kin load it. Pure Python: the `gguf` package writes the container.

Only the llama architecture with a byte-level BPE tokenizer is understood, which is what the embedded student is; of the
number formats f32, f16 and q8_0. The layout is that of the GGUF specification and of llama.cpp's converter.
"""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType
from gguf.quants import quant_shape_to_byte_shape, quantize

from longwatch.kernel.errors import RefusedError
from longwatch.learn.exporting.merging import Merge, object_at
from longwatch.learn.exporting.safetensors import Number, Progress

FILE = "model.gguf"
Array = np.ndarray[Any, Any]
_TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_PARTS = {
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
_TYPES = {
    Number.F32: (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    Number.F16: (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    Number.Q8_0: (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}
_BLOCK = 32
"""Values that share a scale in q8_0."""
_NORMAL, _CONTROL, _USER, _UNUSED = 1, 3, 4, 5
"""Kinds of tokens in the GGUF specification."""
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
_SPLITTERS: dict[str, list[dict[str, Any]]] = {
    "smollm": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    "gpt-2": [_BYTE_LEVEL],
}
"""What `tokenizer.ggml.pre` calls the ways in which text is split before it becomes tokens."""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """A tokenizer as GGUF has it."""

    splitter: str
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    merges: tuple[str, ...]
    special: dict[str, int]
    """Number of the token by its role, as GGUF calls it."""
    template: str


def check(base: Path) -> None:
    """Return if this base can be written as GGUF.

    Raises:
        RefusedError: it cannot; the message says what is not supported, and what to do instead.
    """
    _understood(base)
    _tokens(base)


def write(merge: Merge, base: Path, folder: Path, number: Number, progress: Progress) -> None:
    """Write the file into an empty folder, one tensor at a time.

    Raises:
        RefusedError: as `check`.
        ConfigError: a value does not fit the number format.
    """
    config, tokens = _understood(base), _tokens(base)
    kind, file_type = _TYPES[number]
    writer = GGUFWriter(folder / FILE, "llama")
    _describe(writer, config, tokens, file_type)
    named = {_renamed(name): name for name in merge.names}
    for target, source in named.items():
        shape = merge.shape(source)
        stored = _kind(shape, kind)
        size_bytes = math.prod(quant_shape_to_byte_shape(shape, stored))
        writer.add_tensor_info(target, shape, np.dtype(np.float32), size_bytes, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for done, (target, source) in enumerate(named.items(), 1):
        values = _interleaved(target, merge.tensor(source, torch.float32).numpy(), config)
        writer.write_tensor_data(_encoded(source, values, _kind(values.shape, kind)))
        progress(done, len(named))
    writer.close()


def _understood(base: Path) -> dict[str, Any]:
    config = object_at(base / "config.json")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    odd = [
        f"{key} = {found!r}"
        for key, found, wanted in (
            ("model_type", config.get("model_type"), {"llama"}),
            ("hidden_act", config.get("hidden_act", "silu"), {"silu"}),
            ("rope_type", rope.get("rope_type", rope.get("type", "default")), {"default"}),
            ("attention_bias", bool(config.get("attention_bias")), {False}),
            ("mlp_bias", bool(config.get("mlp_bias")), {False}),
        )
        if found not in wanted
    ]
    if odd:
        raise _unsupported(base, ", ".join(odd))
    return {**config, "rope_theta": rope.get("rope_theta", config.get("rope_theta", 10_000.0))}


def _unsupported(base: Path, what: str) -> RefusedError:
    return RefusedError(
        f"{base} has {what}: GGUF is written for the plain llama architecture with a byte-level BPE tokenizer only. Export "
        "safetensors, and convert that folder with llama.cpp's convert_hf_to_gguf.py"
    )


def _tokens(base: Path) -> Tokens:
    stored, told = object_at(base / "tokenizer.json"), object_at(base / "tokenizer_config.json")
    model = stored.get("model") or {}
    splitter = _splitter(stored.get("pre_tokenizer"))
    if model.get("type") != "BPE" or model.get("byte_fallback") or stored.get("normalizer") or not splitter:
        raise _unsupported(base, "a tokenizer of another kind")
    added = {int(one["id"]): one for one in stored.get("added_tokens", ())}
    names = {number: token for token, number in model["vocab"].items()}
    names |= {number: one["content"] for number, one in added.items()}
    size = int(object_at(base / "config.json").get("vocab_size", len(names)))
    if max(names) >= size:
        raise _unsupported(base, f"{max(names) + 1} tokens, more than the {size} of its model")
    merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"])
    return Tokens(
        splitter=splitter,
        tokens=tuple(names.get(number, f"[PAD{number}]") for number in range(size)),
        kinds=tuple(_kind_of(number, names, added) for number in range(size)),
        merges=tuple(merges),
        special=_special(told, {token: number for number, token in names.items()}),
        template=_template(base, told),
    )


def _splitter(found: Any) -> str | None:
    """What GGUF calls this way of splitting, if it has a name for it that is known here."""
    if not isinstance(found, dict):
        return None
    parts = found.get("pretokenizers") if found.get("type") == "Sequence" else [found]
    if not isinstance(parts, list):
        return None
    plain = [{key: value for key, value in part.items() if key != "trim_offsets"} for part in parts]
    return next((name for name, wanted in _SPLITTERS.items() if plain == wanted), None)


def _kind_of(number: int, names: dict[int, str], added: dict[int, dict[str, Any]]) -> int:
    if number in added:
        return _CONTROL if added[number].get("special") else _USER
    return _NORMAL if number in names else _UNUSED


def _special(told: dict[str, Any], numbers: dict[str, int]) -> dict[str, int]:
    roles = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    texts = {role: told.get(name) for name, role in roles.items()}
    plain = {role: text.get("content") if isinstance(text, dict) else text for role, text in texts.items()}
    return {role: numbers[text] for role, text in plain.items() if text in numbers}


def _template(base: Path, told: dict[str, Any]) -> str:
    path = base / "chat_template.jinja"
    found = path.read_text(encoding="utf-8") if path.is_file() else told.get("chat_template")
    return found if isinstance(found, str) else ""


def _describe(writer: GGUFWriter, config: dict[str, Any], tokens: Tokens, file_type: LlamaFileType) -> None:
    heads = config["num_attention_heads"]
    writer.add_file_type(file_type)
    writer.add_quantization_version(2)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(len(tokens.tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(tokens.splitter)
    writer.add_token_list(tokens.tokens)
    writer.add_token_types(tokens.kinds)
    writer.add_token_merges(tokens.merges)
    for role, number in tokens.special.items():
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", number)
    writer.add_add_bos_token(False)
    if tokens.template:
        writer.add_chat_template(tokens.template)


def _renamed(name: str) -> str:
    """Pure: the GGUF name of a tensor of the llama architecture; the inverse of what reads such files."""
    match name.split("."):
        case ["model", "layers", layer, *middle, "weight"] if ".".join(middle) in _PARTS:
            return f"blk.{layer}.{_PARTS['.'.join(middle)]}.weight"
        case _ if name in _TOP:
            return _TOP[name]
        case _:
            raise RefusedError(
                f"tensor {name} is unknown in the llama architecture: export safetensors instead"
            )


def _kind(shape: tuple[int, ...], wanted: GGMLQuantizationType) -> GGMLQuantizationType:
    """Vectors stay as they are, and rows that no blocks fit into are stored in 16 bits, as llama.cpp does."""
    if len(shape) == 1:
        return GGMLQuantizationType.F32
    if wanted is GGMLQuantizationType.Q8_0 and shape[-1] % _BLOCK:
        return GGMLQuantizationType.F16
    return wanted


def _interleaved(target: str, values: Array, config: dict[str, Any]) -> Array:
    """GGUF interleaves the rotated pairs of q and k; transformers has all first members, then all second ones."""
    heads = {
        "attn_q": config["num_attention_heads"],
        "attn_k": config.get("num_key_value_heads") or config["num_attention_heads"],
    }.get(target.split(".")[-2])
    if heads is None:
        return values
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _encoded(source: str, values: Array, kind: GGMLQuantizationType) -> Array:
    found: Array = quantize(np.ascontiguousarray(values), kind)
    if kind is GGMLQuantizationType.F16 and not np.isfinite(found).all():
        raise RefusedError(f"tensor {source} has values that f16 cannot hold: export with --type f32")
    return found

"""GGUF in, a folder that every Hugging Face tool loads out: once, because reading GGUF takes half a minute there.

Only the llama architecture with a byte-level BPE tokenizer is understood: that is what the embedded student is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Binding, Digest
from longwatch.kernel.errors import ConfigError, IntegrityError
from longwatch.learn.student.cache import alone, publish, staging
from longwatch.learn.student.fetch import Progress, silent

if TYPE_CHECKING:
    import numpy as np
    import torch
    from gguf import GGUFReader

MANIFEST = "complete.json"
"""Written last: the digests of all other files. """

_MANIFEST_BYTES = 64 * 1024

_FORMAT = 1
"""Part of the folder's name: a later version of this module does not take an older folder for its own."""

_CONTROL = 3
"""`LLAMA_TOKEN_TYPE_CONTROL` of the GGUF specification."""

_RENAMED = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def convert(gguf: Path, *, cache: Path, progress: Progress = silent) -> Path:
    """Return the folder made from a GGUF file, made first if it is not there, and checked by digest if it is.

    Weights are stored as bfloat16, with the configuration, the tokenizer and its chat template.

    Raises:
        ConfigError: the file holds another architecture or kind of tokenizer.
        IntegrityError: the folder is not what was made; the message names the files.
    """
    folder = converted(digest.of_file(gguf), cache)
    name = folder.name
    with alone(cache, "convert"):
        if folder.exists():
            verify(folder)
            return folder
        with staging(cache, "converting") as made:
            files.make_folder(made / name)
            _write(gguf, made / name, progress)
            publish(made / name, folder)
    return folder


def converted(gguf: Digest, cache: Path) -> Path:
    """Return where the folder that is made from a GGUF file with this digest lies, or will lie. Pure."""
    return cache / f"student-{gguf[:16]}-{_FORMAT}"


def verify(folder: Path) -> Binding:
    """Return what a converted folder is bound to, after reading all of it.

    Raises:
        IntegrityError: a file changed, is missing or is new.
    """
    wanted = msgspec.json.decode(files.read_bounded(folder / MANIFEST, _MANIFEST_BYTES), type=Binding)
    try:
        digest.check(wanted, digest.bind(wanted.name, folder, without=frozenset({MANIFEST})))
    except IntegrityError as error:
        raise IntegrityError(f"{folder}: {error} Or remove the folder: it is made again") from error
    return wanted


def _write(gguf: Path, folder: Path, progress: Progress) -> None:
    from gguf import GGUFReader  # noqa: PLC0415 - the `learn` extra, and only here
    from safetensors.torch import save  # noqa: PLC0415 - brings torch, which only child programs load

    reader = GGUFReader(gguf)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    _understood(gguf, fields)
    for name, content in _texts(fields).items():
        files.replace(folder / name, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    files.replace(folder / "tokenizer.json", _tokenizer(fields).encode())
    files.replace(folder / "model.safetensors", save(_weights(reader, fields, progress), {"format": "pt"}))
    files.replace_json(folder / MANIFEST, digest.bind("student", folder))


def _understood(gguf: Path, fields: dict[str, Any]) -> None:
    found = (fields.get("general.architecture"), fields.get("tokenizer.ggml.model"))
    if found != ("llama", "gpt2"):
        raise ConfigError(
            f"{gguf} holds architecture {found[0]!r} with tokenizer {found[1]!r}; only 'llama' with 'gpt2' is converted: "
            "set [student] model to a Hugging Face folder of it"
        )


def _texts(fields: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The three configuration files, by name."""
    special = _special(fields)
    return {
        "config.json": _config(fields),
        "generation_config.json": {
            "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
            "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
            "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": fields["llama.context_length"],
            "clean_up_tokenization_spaces": False,
            "padding_side": "left",
            "chat_template": fields["tokenizer.chat_template"],
            "bos_token": special[fields["tokenizer.ggml.bos_token_id"]],
            "eos_token": special[fields["tokenizer.ggml.eos_token_id"]],
            "unk_token": special[fields["tokenizer.ggml.unknown_token_id"]],
            "pad_token": special[fields["tokenizer.ggml.padding_token_id"]],
        },
    }


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    heads = fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": fields["llama.vocab_size"],
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": fields["llama.embedding_length"] // heads,
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": fields["llama.attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": fields["llama.rope.freq_base"]},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "dtype": "bfloat16",
    }


def _special(fields: dict[str, Any]) -> dict[int, str]:
    """Control tokens by number."""
    kinds: Sequence[int] = fields["tokenizer.ggml.token_type"]
    tokens: Sequence[str] = fields["tokenizer.ggml.tokens"]
    return {number: tokens[number] for number, kind in enumerate(kinds) if kind == _CONTROL}


def _tokenizer(fields: dict[str, Any]) -> str:
    """Byte-level BPE in which every digit is a token (`tokenizer.ggml.pre` = smollm), as `tokenizer.json`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415 - as above

    vocabulary = {token: number for number, token in enumerate(fields["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True, normalized=False) for token in _special(fields).values()]
    tokenizer.add_special_tokens(special)
    return str(tokenizer.to_str())


def _weights(reader: "GGUFReader", fields: dict[str, Any], progress: Progress) -> "dict[str, torch.Tensor]":
    import torch  # noqa: PLC0415 - only child programs load torch
    from gguf import dequantize  # noqa: PLC0415 - as above

    weights = {}
    for number, tensor in enumerate(reader.tensors, 1):
        values = dequantize(tensor.data, tensor.tensor_type)
        values = _in_halves(tensor.name, values, fields)
        weights[_renamed(tensor.name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
        progress("converting the student", number, len(reader.tensors))
    return weights


def _renamed(name: str) -> str:
    """Pure: the Hugging Face name of a GGUF tensor of the llama architecture."""
    match name.split("."):
        case ["blk", layer, part, "weight"] if part in _RENAMED:
            return f"model.layers.{layer}.{_RENAMED[part]}.weight"
        case [part, "weight"] if part in _TOP:
            return f"{_TOP[part]}.weight"
        case _:
            raise ConfigError(
                f"tensor {name!r} is unknown in the llama architecture: convert the model elsewhere"
            )


def _in_halves(name: str, values: "np.ndarray[Any, Any]", fields: dict[str, Any]) -> "np.ndarray[Any, Any]":
    """GGUF interleaves the rotated pairs of q and k; transformers wants all first members, then all second ones."""
    heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }.get(name.split(".")[-2])
    if heads is None:
        return values
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)

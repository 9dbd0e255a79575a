"""A student so small that a step takes milliseconds: a random Llama over bytes."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from longwatch.kernel.digest import of_bytes
from longwatch.learn.settings import Recipe
from longwatch.learn.training.plan import Job
from longwatch.learn.training.rows import Row

END = 256
BASE = of_bytes(b"tiny")


class ByteTokenizer:
    """One token for each byte; a turn ends with token 256."""

    chat_template = "tiny"
    name_or_path = "tiny"
    eos_token_id = END

    def apply_chat_template(self, conversation, *, tokenize, add_generation_prompt):
        assert not tokenize
        turns = "".join(f"<{turn['role'][0]}>{turn['content']}\n" for turn in conversation)
        return turns + ("<a>" if add_generation_prompt else "")

    def __call__(self, text, *, add_special_tokens):
        assert not add_special_tokens
        ids = list(text.encode())
        return {"input_ids": ids}


def model(seed=0, *, dtype=torch.float32):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=END,
    )
    return LlamaForCausalLM(config).to(dtype).eval()


def rows(count=12):
    return tuple(
        Row(prompt=f"add {number}{'!' * (number % 5)}", answer=f"return {number}" + " + 1" * (number * 7 % 6))
        for number in range(count)
    )


def recipe(**changed):
    usual = {"batch": 4, "max_steps": 9, "max_tokens": 96, "checkpoint_steps": 2, "seed": 7}
    return Recipe(**{**usual, **changed})


def job(folder, *, count=12, **changed):
    return Job(rows=rows(count), recipe=recipe(**changed), folder=folder, base=BASE, threads=1)

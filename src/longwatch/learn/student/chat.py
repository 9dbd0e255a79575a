"""The chat template around a prompt. Training and generation take it from here, so that they cannot differ."""

from typing import Any

from longwatch.kernel.errors import ConfigError


def prompt_ids(tokenizer: Any, prompt: str) -> list[int]:
    """Return the tokens of a chat in which the student speaks next.

    Raises:
        ConfigError: the student has no chat template.
    """
    if not tokenizer.chat_template:
        raise ConfigError(
            f"the student {tokenizer.name_or_path} has no chat template: choose an instruction-tuned model "
            "(its name often ends in -Instruct), or add a chat_template to its tokenizer_config.json"
        )
    messages = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def answer_ids(tokenizer: Any, answer: str) -> list[int]:
    """Return the tokens that a student should say after `prompt_ids`: the answer, and that it is done."""
    ids: list[int] = tokenizer(answer, add_special_tokens=False)["input_ids"]
    return [*ids, tokenizer.eos_token_id]

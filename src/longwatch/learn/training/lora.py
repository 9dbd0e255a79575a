"""The student with an adapter to train, and the adapter as the files that everyone loads (PEFT)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load as tensors_from
from safetensors.torch import save as bytes_of

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError
from longwatch.learn.adapters import CONFIG, MAX_BYTES, WEIGHTS
from longwatch.learn.settings import Recipe
from longwatch.learn.training.checkpoints import Tensors


class Learner:
    """A base model with a LoRA adapter and its optimiser: what changes while training."""

    def __init__(self, model: torch.nn.Module, recipe: Recipe, start: Path | None) -> None:
        """Add an adapter to `model`, drawn from the recipe's seed, or read from the folder `start`."""
        torch.manual_seed(recipe.seed)
        # Without dropout: a step then is a function of its weights and rows alone.
        self.model: Any = get_peft_model(model, _config(recipe)).eval()
        if start is not None:
            self._load_adapter(tensors_from(files.read_bounded(start / WEIGHTS, MAX_BYTES)))
        self.trained = {
            name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad
        }
        self.optimiser = torch.optim.AdamW(self.parameters, lr=recipe.learning_rate, weight_decay=0.0)

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The trained ones, always in the same order."""
        return list(self.trained.values())

    @property
    def device(self) -> torch.device:
        """Where it trains."""
        return self.parameters[0].device

    def forget_gradient(self) -> None:
        """Begin a step anew."""
        self.optimiser.zero_grad(set_to_none=True)

    def update(self, rate: float) -> None:
        """Take one step along the gradient."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()

    def finite(self) -> bool:
        """True if no weight and no moment is NaN or infinite."""
        every = (*self.adapter().values(), *self._moments().values())
        return all(bool(tensor.isfinite().all()) for tensor in every)

    def adapter(self) -> dict[str, torch.Tensor]:
        """The adapter's weights under PEFT's names."""
        state: Mapping[str, torch.Tensor] = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        return {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(state.items())}

    def files(self) -> dict[str, bytes]:
        """The adapter as files, without a path or a time: equal weights are equal bytes."""
        return {
            WEIGHTS: bytes_of(self.adapter(), metadata={"format": "pt"}),
            CONFIG: _bytes_of(self.model.peft_config["default"]),
        }

    def tensors(self) -> Tensors:
        """Everything that a checkpoint needs."""
        return Tensors(adapter=self.adapter(), optimiser=self._moments(), random=_random(self.device))

    def restore(self, tensors: Tensors) -> None:
        """Become what was saved, bit for bit."""
        self._load_adapter(tensors.adapter)
        self.optimiser.state.clear()
        for key, tensor in tensors.optimiser.items():
            name, _, moment = key.rpartition("/")
            # The count of steps stays on the processor, where AdamW keeps it.
            where = torch.device("cpu") if moment == "step" else self.device
            self.optimiser.state[self.trained[name]][moment] = tensor.to(where)
        torch.set_rng_state(tensors.random["cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors.random["cuda"], self.device)
        self.forget_gradient()

    def _moments(self) -> dict[str, torch.Tensor]:
        return {
            f"{name}/{moment}": tensor.detach().cpu().contiguous()
            for name, parameter in self.trained.items()
            for moment, tensor in self.optimiser.state.get(parameter, {}).items()
        }

    def _load_adapter(self, weights: Mapping[str, torch.Tensor]) -> None:
        own = self.adapter()
        if {name: tensor.shape for name, tensor in own.items()} != {
            name: tensor.shape for name, tensor in weights.items()
        }:
            raise ConfigError(
                "the adapter to start from has other layers or another rank than [training] rank says:"
                " set it as it was, or start from the base model"
            )
        set_peft_model_state_dict(self.model, dict(weights))


def _config(recipe: Recipe) -> LoraConfig:
    return LoraConfig(
        r=recipe.rank,
        lora_alpha=2 * recipe.rank,
        target_modules="all-linear",
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )


def _bytes_of(config: Any) -> bytes:
    """Write an adapter's configuration in PEFT's format, but without the base model's path."""
    told = {**config.to_dict(), "inference_mode": True, "base_model_name_or_path": None}
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in told.items()}
    return msgspec.json.format(msgspec.json.encode(plain, order="sorted", enc_hook=str), indent=2) + b"\n"


def _random(device: torch.device) -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states

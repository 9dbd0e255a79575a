"""The training loop on a tiny student: gradients, order, pauses, memory, NaN, divergence, resumes that prove themselves."""

import json
import math
import os

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import PeftModel
from tests.support import train_tiny
from tests.support.train_tiny import ByteTokenizer

from longwatch.kernel.errors import ConfigError, FailureClass, IntegrityError, LongwatchError
from longwatch.learn import adapters, sealed
from longwatch.learn.training import checkpoints, gradient, loop, memory
from longwatch.learn.training.lora import Learner
from longwatch.learn.training.plan import Plan, make_plan
from longwatch.learn.training.results import (
    GaveUp,
    Halved,
    Miscalculated,
    Paused,
    Progress,
    Resumed,
    RolledBack,
    Trained,
)
from longwatch.learn.training.rows import Row, Tokens, encode, micro_batches

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def train(job, *, model=None, stop=lambda: False, told=None):
    student = train_tiny.model() if model is None else model
    report = (lambda _: None) if told is None else told.append
    return loop.train(job, student, ByteTokenizer(), should_stop=stop, report=report)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted training gives."""
    result = train(train_tiny.job(tmp_path_factory.mktemp("whole")))
    assert isinstance(result, Trained)
    return result


def saved_floats(folder):
    """Every tensor and number that stands in any checkpoint or adapter."""
    for path in folder.rglob("*.safetensors"):
        if path.name != checkpoints.RANDOM:
            yield from (tensor.float() for tensor in checkpoints.tensors_from(path.read_bytes()).values())
    for path in folder.rglob(checkpoints.PLACE):
        place = json.loads(path.read_bytes())
        yield torch.tensor([place["probe"], place["first_probe"], *place["losses"]])


# Rows


@pytest.mark.guarantee("L11")
def test_the_prompt_carries_no_loss_and_the_end_of_the_answer_does():
    (tokens,) = encode(ByteTokenizer(), [Row(prompt="hello", answer="world")], 100).rows
    assert bytes(tokens.ids[: tokens.prompt]) == b"<u>hello\n<a>"
    assert tokens.ids[tokens.prompt :] == (*b"world", train_tiny.END)
    student = train_tiny.model()
    changed = Tokens((1, *tokens.ids[1:]), tokens.prompt)
    losses = [gradient.summed_loss(student, [row]).item() for row in (tokens, changed)]
    logits = student(input_ids=torch.tensor([tokens.ids])).logits[0, tokens.prompt - 1 : -1]
    expected = torch.nn.functional.cross_entropy(
        logits, torch.tensor(tokens.ids[tokens.prompt :]), reduction="sum"
    )
    assert losses[0] == pytest.approx(float(expected), rel=1e-5)
    assert losses[0] != losses[1], "the prompt is read, though"


@pytest.mark.guarantee("L11")
@given(st.lists(st.integers(0, 60), max_size=12), st.integers(20, 60))
def test_rows_that_are_too_long_are_dropped_whole_and_counted(sizes, most):
    rows = [Row(prompt="p", answer="a" * size) for size in sizes]
    encoded = encode(ByteTokenizer(), rows, most)
    kept = [size for size in sizes if len("<u>p\n<a>") + size + 1 <= most]
    assert [row.learned - 1 for row in encoded.rows] == kept
    assert encoded.dropped == len(sizes) - len(kept)


def test_without_rows_that_fit_nothing_is_trained(tmp_path):
    result = train(train_tiny.job(tmp_path, max_tokens=16))
    assert isinstance(result, GaveUp)
    assert "12 were longer" in result.why


@pytest.mark.guarantee("L11")
@given(st.lists(st.integers(2, 90), min_size=1, max_size=20), st.integers(1, 400))
def test_micro_batches_hold_each_row_once_inside_their_bound(sizes, bound):
    rows = [Tokens(tuple(range(size)), 1) for size in sizes]
    parts = micro_batches(rows, bound)
    assert sorted((row for part in parts for row in part), key=id) == sorted(
        sorted(rows, key=lambda row: -len(row.ids)), key=id
    )
    for part in parts:
        assert len(part) == 1 or max(len(row.ids) for row in part) * len(part) <= bound


# Gradients


def some_tokens(count=9):
    return encode(ByteTokenizer(), train_tiny.rows(count), 96).rows


def gradient_of(rows, micro_tokens):
    learner = Learner(train_tiny.model(), train_tiny.recipe(), None)
    # An adapter begins at zero on one side, where most gradients vanish.
    with torch.no_grad():
        for number, parameter in enumerate(learner.parameters):
            parameter.add_(0.01 * math.sin(number + 1))
    loss = gradient.accumulate(learner.model, rows, micro_tokens, lambda: None)
    return loss, torch.cat([parameter.grad.flatten() for parameter in learner.parameters])


@pytest.mark.guarantee("L11")
@pytest.mark.parametrize("micro_tokens", [1, 50, 100, 200, 300])
def test_the_gradient_does_not_depend_on_the_micro_batch(micro_tokens):
    rows = some_tokens()
    loss, expected = gradient_of(rows, 100_000)
    again, found = gradient_of(rows, micro_tokens)
    assert len(micro_batches(rows, micro_tokens)) > 1
    assert again == pytest.approx(loss, rel=1e-6)
    assert float(expected.norm()) > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6 * float(expected.norm()))


@pytest.mark.guarantee("L11")
def test_each_token_weighs_the_same_whatever_row_it_stands_in():
    rows = some_tokens(4)
    loss, _ = gradient_of(rows, 1)
    single = [gradient_of([row], 1)[0] * row.learned for row in rows]
    assert loss == pytest.approx(sum(single) / sum(row.learned for row in rows), rel=1e-5)


@pytest.mark.guarantee("L11")
def test_the_adapter_learns_in_full_precision_on_a_half_precision_base():
    learner = Learner(train_tiny.model(dtype=torch.bfloat16), train_tiny.recipe(), None)
    assert {parameter.dtype for parameter in learner.parameters} == {torch.float32}
    kinds = {name.split(".lora_")[0].rpartition(".")[2] for name in learner.trained}
    assert kinds == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert {
        module.scaling["default"]
        for module in learner.model.modules()
        if hasattr(module, "scaling") and isinstance(module.scaling, dict)
    } == {2.0}


# Memory


class Greedy:
    """A model's memory: it fails like an accelerator when a forward pass has more tokens than fit."""

    def __init__(self, model, most, error=torch.OutOfMemoryError):
        self.most, self.error, self.seen = most, error, []
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, arguments, named):
        size = named["input_ids"].numel()
        self.seen.append(size)
        if size > self.most:
            raise self.error("CUDA out of memory, or DefaultCPUAllocator: can't allocate memory")


@pytest.mark.guarantee("L11")
@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError, RuntimeError])
def test_out_of_memory_halves_the_micro_batch_and_trains_the_same(tmp_path, whole, error):
    student, told = train_tiny.model(), []
    greedy = Greedy(student, 70, error)
    result = train(train_tiny.job(tmp_path), model=student, told=told)
    assert max(greedy.seen) > 70
    halved = [event for event in told if isinstance(event, Halved)]
    assert halved
    assert halved[0].step == 0, "the longest rows are tried before the first step"
    assert greedy.seen.index(max(greedy.seen)) == 0
    assert result.losses == pytest.approx(whole.losses, rel=1e-5)


@pytest.mark.guarantee("L11")
def test_out_of_memory_in_the_middle_of_a_step_gives_the_same_gradient():
    rows = some_tokens()
    _, expected = gradient_of(rows, 100_000)
    learner = Learner(train_tiny.model(), train_tiny.recipe(), None)
    with torch.no_grad():
        for number, parameter in enumerate(learner.parameters):
            parameter.add_(0.01 * math.sin(number + 1))
    left = iter([False, True])

    def before_each():
        # The second micro-batch fails: the gradient of the first stands in the parameters already.
        if next(left, False):
            raise torch.OutOfMemoryError

    def attempt(micro_tokens):
        learner.forget_gradient()
        return gradient.accumulate(learner.model, rows, micro_tokens, before_each)

    sizes = []
    _, fitted = memory.fitting(attempt, rows, 120, sizes.append)
    assert sizes == [fitted]
    assert fitted < 120
    found = torch.cat([parameter.grad.flatten() for parameter in learner.parameters])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6 * float(expected.norm()))


@pytest.mark.guarantee("L11")
def test_where_not_even_one_row_fits_it_gives_up_and_says_so(tmp_path):
    student = train_tiny.model()
    Greedy(student, 10)
    result = train(train_tiny.job(tmp_path), model=student)
    assert isinstance(result, GaveUp)
    assert "max_tokens" in result.why
    assert not (tmp_path / loop.ADAPTER).exists()


def test_another_runtime_error_is_no_lack_of_memory(tmp_path):
    student = train_tiny.model()
    Greedy(student, 10, lambda _: RuntimeError("shape mismatch"))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        train(train_tiny.job(tmp_path), model=student)


# NaN and divergence


class Spoiled:
    """Spoils the logits of chosen training passes."""

    def __init__(self, model, value, passes):
        self.value, self.passes, self.count = value, passes, 0
        model.register_forward_hook(self)

    def __call__(self, module, arguments, output):
        if not torch.is_grad_enabled():
            return
        self.count += 1
        if self.count in self.passes:
            output.logits = output.logits * self.value


@pytest.mark.guarantee("L12")
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e4])
@pytest.mark.parametrize("at", [2, 5, 10])
def test_a_step_that_goes_wrong_is_never_saved(tmp_path, value, at):
    student, told = train_tiny.model(), []
    # Every step is one micro-batch, the first pass is the trial.
    Spoiled(student, value, {at})
    result = train(train_tiny.job(tmp_path), model=student, told=told)
    assert isinstance(result, Trained)
    (back,) = [event for event in told if isinstance(event, RolledBack)]
    step = at - 2
    assert back.setback.step == step
    assert back.to == step // 2 * 2
    assert result.setbacks == (back.setback,)
    assert len(result.losses) == result.steps - 1, "the rows of that step are skipped"
    assert all(bool(values.isfinite().all()) for values in saved_floats(tmp_path))


@pytest.mark.guarantee("L12")
def test_after_a_setback_the_rate_is_half_and_its_rows_are_not_read(tmp_path, whole):
    student = train_tiny.model()
    Spoiled(student, math.nan, {5})
    read = []

    def remember(module, arguments, named):
        if torch.is_grad_enabled():
            read.append(sorted(row[row.nonzero().flatten()].tolist() for row in named["input_ids"]))

    student.register_forward_pre_hook(remember, with_kwargs=True)
    result = train(train_tiny.job(tmp_path), model=student)
    plan = make_plan(train_tiny.job(tmp_path), train_tiny.model(), ByteTokenizer())
    place = checkpoints.newest(tmp_path, plan.run).place
    usual = msgspec.structs.replace(place, setbacks=())
    assert plan.rate_of(place) == plan.rate_of(usual) / 2
    assert result.losses[:2] == whole.losses[:2]
    assert result.losses[3:] != whole.losses[4:]
    skipped, redone = (sorted(list(row.ids) for row in plan.rows_of(step)) for step in (3, 2))
    assert (read.count(skipped), read.count(redone)) == (1, 2)


@pytest.mark.guarantee("L12")
def test_after_too_many_setbacks_it_gives_up_with_the_evidence(tmp_path):
    student = train_tiny.model()
    Spoiled(student, math.nan, set(range(4, 100)))
    result = train(train_tiny.job(tmp_path), model=student)
    assert isinstance(result, GaveUp)
    assert len(result.setbacks) == loop.SETBACKS + 1
    assert all("loss is nan" in setback.why for setback in result.setbacks)
    assert not (tmp_path / loop.ADAPTER).exists()
    assert all(bool(values.isfinite().all()) for values in saved_floats(tmp_path))
    # Asked again, it knows.
    assert train(train_tiny.job(tmp_path)) == result


@pytest.mark.guarantee("L12")
def test_a_base_model_that_is_broken_gives_up_before_the_first_step(tmp_path):
    student = train_tiny.model()
    with torch.no_grad():
        student.lm_head.weight.fill_(math.nan)
    assert isinstance(train(train_tiny.job(tmp_path), model=student), GaveUp)


@pytest.mark.guarantee("L12")
@pytest.mark.parametrize("harm", [math.nan, math.inf])
def test_weights_that_were_spoiled_silently_are_not_saved(tmp_path, monkeypatch, harm):
    update, count = Learner.update, []

    def spoiling(self, rate):
        update(self, rate)
        count.append(rate)
        if len(count) == 4:
            with torch.no_grad():
                self.parameters[0][0, 0] = harm

    monkeypatch.setattr(Learner, "update", spoiling)
    result = train(train_tiny.job(tmp_path))
    assert isinstance(result, Trained)
    assert [setback.step for setback in result.setbacks] == [3]
    assert all(bool(values.isfinite().all()) for values in saved_floats(tmp_path))


# Pause and resume


@pytest.mark.guarantee("L12", "L14")
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_pauses_anywhere_change_no_bit(tmp_path_factory, whole, rests):
    job = train_tiny.job(tmp_path_factory.mktemp("paused"))
    for rest in rests:
        left = iter(range(rest))
        result = train(job, stop=lambda left=left: next(left, None) is None)
        if isinstance(result, Trained):
            break
        assert isinstance(result, Paused)
        assert (job.folder / checkpoints.step_name(result.step)).is_dir()
    result = train(job)
    assert result.adapter == whole.adapter
    assert result.losses == whole.losses
    assert result.tokens == whole.tokens


@pytest.mark.guarantee("L14")
def test_a_stop_is_obeyed_before_the_next_micro_batch(tmp_path):
    student, passes, asked = train_tiny.model(), [], []
    student.register_forward_hook(lambda *_: passes.append(torch.is_grad_enabled()))

    def stop():
        asked.append(sum(passes))
        return len(asked) == 6

    # Small micro-batches: the stop falls into the middle of a step.
    job = train_tiny.job(tmp_path, batch=12)
    plan = make_plan(job, train_tiny.model(), ByteTokenizer())
    memory_bound = max(len(row.ids) for row in plan.rows)
    Greedy(student, memory_bound)
    result = train(job, model=student, stop=stop)
    assert isinstance(result, Paused)
    assert sum(passes) == asked[-1], "no micro-batch was begun after the stop"
    assert result.step == 0
    assert train(job).losses == pytest.approx(
        train(msgspec.structs.replace(job, folder=tmp_path / "b")).losses, rel=1e-5
    )


@pytest.mark.guarantee("L12")
def test_a_resume_that_cannot_prove_itself_is_refused(tmp_path):
    job = train_tiny.job(tmp_path)
    left = iter(range(5))
    assert isinstance(train(job, stop=lambda: next(left, None) is None), Paused)
    other = train_tiny.model()
    with torch.no_grad():
        # One bit of one weight: the same job by its digest, but not the same base.
        other.lm_head.weight[65, 0] += 1e-4
    with pytest.raises(LongwatchError, match="probe loss") as refused:
        train(job, model=other)
    assert refused.value.failure_class is FailureClass.FAULT, "another process may calculate right"
    assert isinstance(train(job), Trained)


@pytest.mark.guarantee("L12")
def test_a_processor_that_miscalculates_once_is_told_of_and_costs_nothing(tmp_path, monkeypatch, whole):
    job = train_tiny.job(tmp_path / "cut")
    left = iter(range(5))
    assert isinstance(train(job, stop=lambda: next(left, None) is None), Paused)
    real, wrong, told = gradient.probe_loss, iter([0.01]), []
    monkeypatch.setattr(gradient, "probe_loss", lambda *given: real(*given) + next(wrong, 0.0))
    resumed = train(job, told=told)
    assert (resumed.adapter, resumed.losses) == (whole.adapter, whole.losses)
    miscalculated = [one for one in told if isinstance(one, Miscalculated)]
    assert [one.wrong - one.probe for one in miscalculated] == [pytest.approx(0.01)]


@pytest.mark.guarantee("L12")
@pytest.mark.parametrize("changed", [{"seed": 8}, {"rank": 16}, {"learning_rate": 1e-4}, {"max_tokens": 95}])
def test_another_recipe_does_not_go_on_from_these_checkpoints(tmp_path, changed):
    train(train_tiny.job(tmp_path))
    with pytest.raises(IntegrityError, match="another training"):
        train(train_tiny.job(tmp_path, **changed))


@pytest.mark.guarantee("L12")
def test_a_damaged_checkpoint_costs_its_steps_only_and_this_is_said(tmp_path, whole):
    job, told = train_tiny.job(tmp_path), []
    left = iter(range(7))
    assert train(job, stop=lambda: next(left, None) is None) == Paused(7)
    os.truncate(tmp_path / checkpoints.step_name(7) / checkpoints.OPTIMISER, 100)
    result = train(job, told=told)
    (resumed,) = [event for event in told if isinstance(event, Resumed)]
    assert (resumed.step, resumed.lost_steps, len(resumed.quarantined)) == (6, 1, 1)
    assert result.adapter == whole.adapter


# The adapter


@pytest.mark.guarantee("L11", "L26")
def test_the_adapter_is_what_peft_loads_and_what_was_trained(tmp_path):
    told, student = [], train_tiny.model()
    result = train(train_tiny.job(tmp_path), model=student, told=told)
    folder = tmp_path / loop.ADAPTER
    assert adapters.digest_of(folder) == result.adapter
    loaded = PeftModel.from_pretrained(train_tiny.model(), str(folder)).eval()
    ids = torch.tensor([list(b"<u>add 3\n<a>return")])
    with torch.no_grad():
        assert torch.equal(loaded(input_ids=ids).logits, student(input_ids=ids).logits)
        assert not torch.equal(loaded(input_ids=ids).logits, train_tiny.model()(input_ids=ids).logits)
    config = json.loads((folder / adapters.CONFIG).read_bytes())
    assert (config["r"], config["lora_alpha"], config["base_model_name_or_path"]) == (8, 16, None)
    assert config["target_modules"] == sorted(config["target_modules"])
    progress = [event for event in told if isinstance(event, Progress)]
    assert [event.step for event in progress] == list(range(1, result.steps + 1))
    assert all(event.tokens_per_s > 0 for event in progress)


@pytest.mark.guarantee("L11")
def test_training_lowers_the_loss_and_goes_on_from_an_adapter(tmp_path):
    first = train(train_tiny.job(tmp_path / "a", epochs=3, learning_rate=2e-4))
    start = tmp_path / "a" / loop.ADAPTER
    job = msgspec.structs.replace(train_tiny.job(tmp_path / "b", seed=8), start=start)
    second = train(job)
    untrained = train(train_tiny.job(tmp_path / "c", seed=8))
    assert second.losses[0] < untrained.losses[0]
    assert second.adapter != first.adapter
    assert sum(first.losses[-3:]) < sum(first.losses[:3])
    with pytest.raises(ConfigError, match="rank"):
        train(msgspec.structs.replace(train_tiny.job(tmp_path / "d", rank=16), start=start))


@pytest.mark.guarantee("L11")
def test_an_adapter_that_is_not_what_was_trained_is_not_passed_off(tmp_path):
    train(train_tiny.job(tmp_path))
    target = tmp_path / loop.ADAPTER / adapters.WEIGHTS
    data = bytearray(target.read_bytes())
    data[-1] ^= 1
    target.write_bytes(data)
    with pytest.raises(IntegrityError):
        train(train_tiny.job(tmp_path))


def test_the_bound_of_divergence_lies_between_the_first_loss_and_blind_guessing_upon_it(tmp_path):
    plan: Plan = make_plan(train_tiny.job(tmp_path), train_tiny.model(), ByteTokenizer())
    place = checkpoints.Place(run=plan.run, micro_tokens=1, first_probe=1.0)
    bound = plan.bound_of(place)
    assert gradient.trouble(gradient.Measured(loss=bound - 0.01, norm=1.0), bound) is None
    assert "diverges" in (gradient.trouble(gradient.Measured(loss=bound + 0.01, norm=1.0), bound) or "")
    assert "norm is inf" in (gradient.trouble(gradient.Measured(loss=1.0, norm=math.inf), bound) or "")


def test_the_sealed_adapter_is_whole(tmp_path):
    train(train_tiny.job(tmp_path))
    assert set(sealed.read(tmp_path / loop.ADAPTER)) == {adapters.WEIGHTS, adapters.CONFIG}

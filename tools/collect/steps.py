"""Whole training steps: Hugging Face models of random weights, fp32, AdamW, clipped gradients, one GPU."""

import statistics
import time

WARM_UP_STEPS = 3


class NoTransformers(Exception):
    """The package is missing; the text says what to do."""


def build_model(step):
    try:
        import transformers
    except ImportError as error:
        raise NoTransformers("suite steps needs the package transformers; no weights are downloaded") from error
    # Attention as separate kernels, as Tessera's profile hf_eager has it.
    if step.family == "bert":
        config = transformers.BertConfig(vocab_size=step.vocab, hidden_size=step.hidden, num_hidden_layers=step.layers,
                                         num_attention_heads=step.heads, intermediate_size=step.ffn,
                                         max_position_embeddings=step.seq_len, attn_implementation="eager")
        return transformers.BertForPreTraining(config)
    config = transformers.GPT2Config(vocab_size=step.vocab, n_embd=step.hidden, n_layer=step.layers, n_head=step.heads,
                                     n_inner=step.ffn, n_positions=step.seq_len, attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def batch_of(torch, step):
    def random(limit, *shape):
        return torch.randint(0, limit, shape, device="cuda")

    tokens = random(step.vocab, step.sequences, step.seq_len)
    batch = {"input_ids": tokens, "labels": tokens}
    if step.family == "bert":
        batch["next_sentence_label"] = random(2, step.sequences)
    return batch


def training_step(torch, step):
    """A function that runs one whole step."""
    model = build_model(step).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    forward = torch.compile(model) if step.compiled else model
    batch = batch_of(torch, step)

    def run():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return run


def measure_step(torch, step, repeats):
    """(median seconds, spread in percent, peak allocated GiB). The host's part of the step counts: it is real."""
    torch.cuda.empty_cache()
    run = training_step(torch, step)
    for _ in range(WARM_UP_STEPS):
        run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    quarters = statistics.quantiles(seconds, n=4)
    median = statistics.median(seconds)
    return median, 50 * (quarters[2] - quarters[0]) / median, torch.cuda.max_memory_allocated() / 2**30


def step_row(step, gpu):
    """The columns that say what was run."""
    return {"id": f"{step.model}/{step.framework}/{step.sequences}x{step.seq_len}", "gpu": gpu, "n_gpus": 1,
            "gpus_per_node": 1, "framework": step.framework, "precision": step.precision, "model": step.model,
            "family": step.family, "layers": step.layers, "hidden": step.hidden, "heads": step.heads,
            "kv_heads": step.heads, "ffn": step.ffn, "gated_mlp": 0, "vocab": step.vocab, "tied_embeddings": 1,
            "seq_len": step.seq_len, "tp": 1, "sequence_parallel": 0, "pp": 1, "virtual_stages": 1, "dp": 1, "cp": 1,
            "zero_stage": 0, "micro_batch": step.sequences, "global_batch": step.sequences, "recompute": "none",
            "flash_attention": 0, "optimizer": "adamw", "quality": "A", "derived": 0, "source": "tools/collect"}

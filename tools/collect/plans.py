"""What each suite measures: shapes that transformers run, from short to long. Needs no GPU."""

from dataclasses import dataclass, field

# (n, k) of linear layers: output and input features of GPT-2, BERT and larger transformers.
LAYERS = ((768, 768), (3072, 768), (768, 3072), (1024, 1024), (4096, 1024), (1024, 4096), (1280, 1280), (3840, 1280),
          (5120, 1280), (1280, 5120), (2560, 2560), (4096, 4096), (30522, 1024), (50257, 1280))
ROWS = (16, 128, 512, 1024, 2048, 4096, 8192)
SMALL_LAYERS = ((768, 768), (4096, 1024), (1280, 5120), (4096, 4096))
SMALL_ROWS = (128, 1024, 4096)

# (batch, m, n, k) of attention: scores and their product with the values.
HEADS = ((16, 64), (80, 64), (256, 64), (512, 128))
SEQUENCES = (128, 384, 512, 1024, 2048)

BINARY = ("add", "mul", "div", "pow")
SCALAR = ("add_scalar", "mul_scalar", "div_scalar", "pow_scalar")
UNARY = ("relu", "gelu", "tanh")
ROWWISE = ("softmax", "layer_norm")
VECTOR_OPS = BINARY + SCALAR + UNARY + ROWWISE
MATRICES = ((64, 768), (512, 1024), (2048, 1280), (4096, 4096), (16384, 1024), (16384, 5120), (65536, 1024),
            (32768, 8192))
SMALL_MATRICES = ((512, 1024), (4096, 4096), (16384, 5120))

# Every TEST_EVERY-th shape of an operator is kept for judging: Tessera fits nothing to split = test.
TEST_EVERY = 5


@dataclass(frozen=True)
class Call:
    """One operator on one shape; sizes that it does not have are None."""

    op: str
    split: str = "train"
    dtype: str = "fp32"
    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    rows: int | None = None
    cols: int | None = None

    def text(self):
        sizes = (self.batch, self.m, self.n, self.k, self.rows, self.cols)
        return f"{self.op} {self.dtype} " + "x".join(str(size) for size in sizes if size is not None)

    def bytes(self):
        """Memory of operands and result."""
        size = 4 if self.dtype in ("fp32", "tf32") else 2
        if self.rows is not None:
            return 3 * size * self.rows * self.cols
        batch = self.batch or 1
        shared = 1 if self.op == "linear" else batch
        return size * (batch * self.m * (self.k + self.n) + shared * self.n * self.k)


@dataclass(frozen=True)
class Step:
    """One training step of a whole model; sizes as in the model's published configuration."""

    model: str
    family: str
    compiled: bool
    sequences: int
    seq_len: int
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    precision: str = field(default="fp32")

    @property
    def framework(self):
        return "hf_compiled" if self.compiled else "hf_eager"

    def text(self):
        return f"{self.model} {self.framework} {self.sequences} sequences of {self.seq_len}"


def with_splits(calls):
    """Every TEST_EVERY-th call of each operator becomes split = test."""
    seen = {}
    for call in calls:
        seen[call.op] = seen.get(call.op, 0) + 1
        split = "test" if seen[call.op] % TEST_EVERY == 0 else "train"
        yield Call(**{**call.__dict__, "split": split})


def fp32_calls(small):
    for n, k in SMALL_LAYERS if small else LAYERS:
        for m in SMALL_ROWS if small else ROWS:
            yield Call("linear", batch=1, m=m, n=n, k=k)
    for batch, head in HEADS[:2] if small else HEADS:
        for sequence in SEQUENCES[2:4] if small else SEQUENCES:
            yield Call("bmm", batch=batch, m=sequence, n=sequence, k=head)
            yield Call("bmm", batch=batch, m=sequence, n=head, k=sequence)
    for op in VECTOR_OPS:
        for rows, cols in SMALL_MATRICES if small else MATRICES:
            yield Call(op, rows=rows, cols=cols)


def tensor_core_calls(dtypes, small):
    for dtype in dtypes:
        for n, k in SMALL_LAYERS if small else LAYERS:
            for m in SMALL_ROWS if small else ROWS:
                yield Call("linear", dtype=dtype, m=m, n=n, k=k)


GPT2_LARGE = {"model": "gpt2-large", "family": "gpt", "layers": 36, "hidden": 1280, "heads": 20, "ffn": 5120,
              "vocab": 50257, "seq_len": 1024}
BERT_LARGE = {"model": "bert-large", "family": "bert", "layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096,
              "vocab": 30522, "seq_len": 512}


def training_steps(small):
    for model, batches in ((GPT2_LARGE, (1, 2, 4, 8)), (BERT_LARGE, (2, 8, 16, 32))):
        for compiled in (False, True):
            for sequences in batches[:1] if small else batches:
                yield Step(**model, compiled=compiled, sequences=sequences)


def plan_of(suite, dtypes, small):
    if suite == "fp32":
        return list(with_splits(fp32_calls(small)))
    if suite == "tensor-core":
        return list(with_splits(tensor_core_calls(dtypes, small)))
    return list(training_steps(small))

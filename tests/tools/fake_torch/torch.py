"""Stands in for PyTorch in tests of tools/collect: a GPU of invented speed with a clock of its own.

Products run at PRODUCT_RATE, traffic at BANDWIDTH, every call 2 us longer. FAKE_TORCH_GPU names the GPU,
FAKE_TORCH_NO_GRAPH=1 refuses captures, FAKE_TORCH_INTERRUPT_AT=N is Ctrl-C in capture N, FAKE_TORCH_LOG=FILE takes a
line per use that a test may want to know of.
"""

import contextlib
import os
import signal

__version__ = "0.fake"
PRODUCT_RATE = 25e12
BANDWIDTH = 3e12
CALL_SECONDS = 2e-6
float32, bfloat16, float16 = "float32", "bfloat16", "float16"


class _Clock:
    now = 0.0
    captures = 0
    capture = None


def _log(text):
    if "FAKE_TORCH_LOG" in os.environ:
        with open(os.environ["FAKE_TORCH_LOG"], "a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _run(seconds):
    if _Clock.capture is not None:
        _Clock.capture.seconds += seconds
    else:
        _Clock.now += seconds


class Tensor:
    def __init__(self, *shape):
        self.shape = shape

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def clamp_(self, **_):
        return self

    def zero_(self):
        _stream(self)


def _tensor(*shape, **_):
    return Tensor(*shape)


randn = rand = zeros = _tensor


def randint(_low, _high, shape, **_):
    return Tensor(*shape)


def _product(batch, m, n, k):
    _run(CALL_SECONDS + 2 * batch * m * n * k / PRODUCT_RATE)


def _stream(*operands):
    _run(CALL_SECONDS + 4 * (sum(operand.numel() for operand in operands) + operands[0].numel()) / BANDWIDTH)


def bmm(a, b):
    _product(a.shape[0], a.shape[1], b.shape[2], a.shape[2])


def add(a, b):
    _stream(*(operand for operand in (a, b) if isinstance(operand, Tensor)))


mul = div = pow = add  # pylint: disable=redefined-builtin


def tanh(a):
    _stream(a)


def set_float32_matmul_precision(word):
    _log(f"precision {word}")


@contextlib.contextmanager
def no_grad():
    yield


def compile(model):  # pylint: disable=redefined-builtin
    return model


class _Functional:
    relu = gelu = staticmethod(tanh)

    @staticmethod
    def linear(a, weight, _bias=None):
        rows = a.numel() // a.shape[-1]
        _product(1, rows, weight.shape[0], weight.shape[1])

    @staticmethod
    def softmax(a, dim):
        assert dim == -1
        _stream(a)

    @staticmethod
    def layer_norm(a, shape, _weight, _bias):
        assert shape == (a.shape[-1],)
        _stream(a)


class nn:
    functional = _Functional

    class utils:
        @staticmethod
        def clip_grad_norm_(_parameters, _norm):
            return None


class optim:
    class AdamW:
        def __init__(self, _parameters, lr):
            self.lr = lr

        def zero_grad(self, set_to_none):
            assert set_to_none

        def step(self):
            _run(1e-3)


class _Settings:
    allow_tf32 = True


class backends:
    class cuda:
        matmul = _Settings()

    class cudnn:
        allow_tf32 = True

        @staticmethod
        def version():
            return 0


class version:
    cuda = "0.fake"


class _Graph:
    def __init__(self):
        self.seconds = 0.0

    def replay(self):
        _log("replay")
        _run(self.seconds)


class _Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = _Clock.now

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class _Stream:
    def wait_stream(self, _other):
        pass


class _Properties:
    L2_cache_size = 50 << 20


class cuda:
    Event, Stream, CUDAGraph = _Event, _Stream, _Graph

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def get_device_name(_index):
        return os.environ.get("FAKE_TORCH_GPU", "NVIDIA H200")

    @staticmethod
    def get_device_properties(_index):
        return _Properties()

    @staticmethod
    def current_stream():
        return _Stream()

    @staticmethod
    @contextlib.contextmanager
    def stream(_stream):
        yield

    @staticmethod
    @contextlib.contextmanager
    def graph(graph):
        if os.environ.get("FAKE_TORCH_NO_GRAPH"):
            raise RuntimeError("operation not permitted when stream is capturing")
        _log(f"capture tf32={backends.cuda.matmul.allow_tf32}")
        _Clock.captures += 1
        if _Clock.captures == int(os.environ.get("FAKE_TORCH_INTERRUPT_AT", 0)):
            os.kill(os.getpid(), signal.SIGINT)
        _Clock.capture = graph
        try:
            yield
        finally:
            _Clock.capture = None

    @staticmethod
    def _sleep(cycles):
        _log("sleep")
        _Clock.now += cycles / 1.5e9

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def mem_get_info():
        return 100 << 30, 141 << 30

    @staticmethod
    def empty_cache():
        pass

    @staticmethod
    def reset_peak_memory_stats():
        pass

    @staticmethod
    def max_memory_allocated():
        return 3 << 30

"""What PyTorch does for a training step, counted on the CPU: parameters, FLOPs of products, launches on CUDA, and
bytes that autograd saves, storage by storage. Values do not matter, so any sizes do."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that launch nothing: views and bookkeeping.
VIEWS = frozenset("""
alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose unbind
unsqueeze view _unsafe_view _reshape_alias reshape chunk unfold empty empty_like empty_strided new_empty
new_empty_strided set_ is_same_size sym_size _local_scalar_dense item lift lift_fresh
""".split())

# Kernels of one operator on CUDA where they are not one. Sources: aten/src/ATen/native/cuda/SoftMax.cu
# (softmax_backward_cuda_out: gradient times output into a temporary, then the kernel), layer_norm_kernel.cu
# (input gradient; gamma and beta), FunctionsManual.cpp and TensorShape.cpp (slice_backward: zeros and a copy),
# cuda/DilatedMaxPool2d.cu (zeros first), native/cuda/TensorFactories.cu (eye: zeros, the diagonal).
SEVERAL = {"_softmax_backward_data": 2, "native_layer_norm_backward": 2, "slice_backward": 2, "select_backward": 2,
           "max_pool2d_with_indices_backward": 2, "eye": 2}

# On the CPU dropout draws a mask, divides it and multiplies; on CUDA one kernel does (Dropout.cu), with a mask of bytes.
OF_DROPOUT = frozenset(["bernoulli_", "div_"])

PRODUCTS = frozenset(["mm", "addmm", "bmm", "baddbmm"])


def name_of(func):
    return func._schema.name.split("::")[-1]


def product_flops(name, args):
    """Two per multiplication and addition."""
    a, b = (args[0], args[1]) if name in ("mm", "bmm") else (args[1], args[2])
    flops = 2 * a.shape[-2] * a.shape[-1] * b.shape[-1]
    return flops * (a.shape[0] if a.dim() == 3 else 1)


def convolution_flops(args, out):
    weight = args[1]
    return 2 * out.numel() * weight[0].numel()


class Launches(TorchDispatchMode):
    """Counts kernels by operator, and FLOPs of products and convolutions."""

    def __init__(self):
        super().__init__()
        self.kernels, self.flops, self.masks = {}, 0, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func)
        if name == "_local_scalar_dense" and not isinstance(args[0], torch.Tensor):
            return args[0]
        out = func(*args, **(kwargs or {}))
        if name in VIEWS:
            return out
        if name == "bernoulli_":
            self.masks.add(storage_of(out).data_ptr())
        self.count(name, args)
        if name in PRODUCTS:
            self.flops += product_flops(name, args)
        elif name == "convolution":
            self.flops += convolution_flops(args, out)
        elif name == "convolution_backward":
            grad, wanted = args[0], args[-1]
            self.flops += (wanted[0] + wanted[1]) * 2 * grad.numel() * args[2][0].numel()
        return out

    def count(self, name, args):
        number = 0 if name in OF_DROPOUT else SEVERAL.get(name, 1)
        if name == "_softmax" and not args[0].is_contiguous():
            number = 2  # copies its input first (SoftMax.cu, host_softmax)
        if name == "convolution" and args[2] is not None:
            number = 2  # the bias is added behind cuDNN (native/Convolution.cpp)
        if name == "convolution_backward":
            number = sum(args[-1])
        if name in ("convolution_backward", "native_batch_norm_backward") and not args[0].is_contiguous():
            number += 1  # copies the gradient first (native/cudnn)
        self.kernels[name] = self.kernels.get(name, 0) + number

    def total(self):
        return sum(self.kernels.values())


def storage_of(tensor):
    return getattr(tensor, "untyped_storage", tensor.storage)()


class Saved:
    """Bytes of distinct storages that autograd keeps, without parameters and inputs of the model."""

    def __init__(self, module, inputs=()):
        self.known = {storage_of(t).data_ptr() for t in [*module.parameters(), *module.buffers(), *inputs]}
        self.held = {}

    def pack(self, tensor):
        if tensor.dim() == 0:  # a Python number, which dispatch modes do not take for a tensor
            return tensor.item(), tensor.dtype
        storage = storage_of(tensor)
        if storage.data_ptr() not in self.known:
            self.held[storage.data_ptr()] = (storage.nbytes(), tensor)  # the tensor keeps the address taken
        return tensor

    @staticmethod
    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else torch.tensor(packed[0], dtype=packed[1])

    def bytes(self, masks=()):
        """`masks`: addresses of dropout's masks, which have a byte per number on CUDA."""
        return sum(size // 4 if at in masks else size for at, (size, _) in self.held.items())


class Step:
    """`module(*inputs)` and the backward pass of its result with a gradient from outside; counts each.

    Gradients of parameters exist already, as behind a first micro-batch: a kernel adds each.
    """

    def __init__(self, module, *inputs):
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        for parameter in trained:
            parameter.grad = torch.zeros_like(parameter)
        saved = Saved(module, [t for t in inputs if not t.requires_grad])
        with Launches() as forward, torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
            out = module(*inputs)
        gradient = torch.ones_like(out)
        with Launches() as backward:
            out.backward(gradient)
        backward.kernels.pop("copy_", None)  # the input's gradient, which the block before would take as it is
        self.forward, self.backward, self.saved = forward, backward, saved.bytes(forward.masks)
        self.parameters = sum(parameter.numel() for parameter in trained)

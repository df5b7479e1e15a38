#pragma once

namespace tessera {

// Framework calls of autograd functions that are written in Python, beyond the kernels and views of
// the graph: buffers, slices, views under no_grad, checks, and what a launch of Triton takes, which
// counts as six. Counted in the sources that each names; `Tape::python_calls` charges them where
// the framework profile has such functions.

constexpr int kTritonLaunch = 6;
/// flash-attn ops/triton/layer_norm.py: reshapes, three empty tensors, checks of strides; backward
/// has a sum of partial weight gradients too.
constexpr int kNormForward = 11 + kTritonLaunch;
constexpr int kNormBackward = 12 + kTritonLaunch;
/// flash-attn layers/rotary.py and ops/triton/rotary.py, of one tensor.
constexpr int kRotary = 7 + kTritonLaunch;
/// flash-attn flash_attn_interface.py, flash_attn_varlen_func.
constexpr int kAttentionForward = 9;
constexpr int kAttentionBackward = 11;
/// nanotron parallel/tensor_parallel/functional.py, asynchronous forms.
constexpr int kColumnForward = 12;
constexpr int kColumnBackward = 12;
constexpr int kRowForward = 5;
constexpr int kRowBackward = 14;
/// nanotron parallel/pipeline_parallel/block.py and calls of ten modules, for a layer.
constexpr int kLayerModules = 16;
/// nanotron optim/gradient_accumulator.py, for a parameter.
constexpr int kAccumulation = 3;

}  // namespace tessera

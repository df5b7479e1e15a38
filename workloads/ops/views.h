#pragma once

#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

// Operators that only change how memory is looked at. They are free on the GPU unless the strides
// demand a copy; their gradients are views too, and may demand one.

/// `sizes` over the same memory, which must be possible. Backward: `reshape` of the gradient.
Tensor view(Tape& tape, const Tensor& x, Sizes sizes);
/// A view where the strides allow it, else a copy (2e per element).
Tensor reshape(Tape& tape, const Tensor& x, Sizes sizes);
Tensor permute(Tape& tape, const Tensor& x, std::vector<int> order);
/// Swaps two dimensions, counted from 0.
Tensor transpose(Tape& tape, const Tensor& x, int a, int b);
/// Swaps the last two dimensions, outside autograd.
Tensor transposed(Tape& tape, const Tensor& x);
/// A row-major copy, 2e. Backward: the gradient itself.
Tensor clone(Tape& tape, const std::string& name, const Tensor& x);
/// `x` itself where it is row-major, else a copy.
Tensor contiguous(Tape& tape, const std::string& name, const Tensor& x);
/// Parts of the last dimension of the given lengths. Backward: one kernel that concatenates the
/// gradients.
std::vector<Tensor> split_last(Tape& tape, const std::string& name, const Tensor& x,
                               const Sizes& lengths);
/// `count` equal parts of the last dimension. Backward: one kernel that concatenates the gradients.
std::vector<Tensor> chunk_last(Tape& tape, const std::string& name, const Tensor& x, int count);
/// The same of the first dimension.
std::vector<Tensor> chunk_first(Tape& tape, const std::string& name, const Tensor& x, int count);
/// Two tensors side by side along the last dimension: a copy of both. Backward: views.
Tensor concatenate_last(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
/// Tensors one after the other along dimension `dim`: a copy of all of them. Backward: views.
Tensor concatenate(Tape& tape, const std::string& name, const std::vector<Tensor>& parts,
                   std::size_t dim);
/// Repeats dimensions of size 1. Backward: a sum over them.
Tensor expand(Tape& tape, const std::string& name, const Tensor& x, const Sizes& sizes);
/// `length` indices of the last dimension (x[..., a:a+length]). Backward: zero fill and a copy.
Tensor slice_last(Tape& tape, const std::string& name, const Tensor& x, std::int64_t length);
/// First index of dimension `dim`, which disappears. Backward: zero fill and a copy.
Tensor select_first(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim);

}  // namespace tessera

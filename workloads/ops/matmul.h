#pragma once

#include <optional>
#include <string>

#include "workloads/ops/linear.h"

namespace tessera {

enum class Bias : std::uint8_t { none, epilogue };

/// out = a b (+ bias) without gradients; a [.., m, k], b [.., k, n] with equal leading dimensions.
/// The memory order of the operands gives the kernel's layout.
Tensor product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
Tensor product(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
               const Tensor& bias);

/// A tensor for all of a b, and the product of matrices written to `out`, some of its rows.
Tensor product_output(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
void product_to(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                const std::optional<Tensor>& bias, const Tensor& out);

/// The product added to `target`, which other products wrote before (beta = 1): reads it too.
void product_into(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b,
                  const Tensor& target);

/// y = x W (+ bias) over the last dimension of `x`. Backward: data gradient, weight gradient, and a
/// column sum for the bias. Saves x. The product's epilogue adds the bias to matrices and to
/// row-major
/// [.., .., in]; else a kernel of its own does, in place.
/// Source: PyTorch aten/src/ATen/native/Linear.cpp, linear.
Tensor linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
              Bias bias = Bias::epilogue, WeightOrder order = WeightOrder::out_in);
/// The same with a weight [out, in] that exists already.
Tensor linear_with(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight);
/// The same over the last dimension of `x`, of any rank, with everything that can be chosen.
Tensor linear_over_last(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                        const LinearLayer& layer);
Tensor linear_with(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
                   const Tensor& bias);

/// torch.bmm: a [batch, m, k], b [batch, k, n]. Backward: two products. Saves both operands.
Tensor bmm(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
/// torch.matmul of 4-D operands: expand, reshape (a copy where batch and heads do not merge), bmm.
Tensor matmul(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);

}  // namespace tessera

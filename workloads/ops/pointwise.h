#pragma once

#include <string>
#include <vector>

#include "workloads/graph/tape.h"
#include "workloads/model_spec.h"

namespace tessera {

// Element by element operators of PyTorch eager mode: one kernel per call, each operand moved once.
// Bytes in the comments are per element of the output, e = bytes of an element.

/// Shape of a pointwise kernel that writes `out`; `flops` per element.
Kernel pointwise_kernel(const Tensor& out, double flops, KernelKind kind = KernelKind::elementwise);
/// Likewise of a copy that finds its elements one by one (Kernel::strided).
Kernel strided_copy(const Tensor& out, double flops = 0);
/// Shape of a kernel that reduces `in`; traffic is added by `Tape::launch`.
Kernel reduction_kernel(const Tensor& in);

// Without gradients: the words in which backward rules are written.

/// One kernel over the broadcast shape of `inputs`, in the memory order that PyTorch's
/// TensorIterator derives from them. Its kind is `copy` (the strided kernel) where an operand is
/// broadcast or lies in another order, else `elementwise`.
Tensor map(Tape& tape, const std::string& name, const std::vector<Tensor>& inputs,
           double flops = 1);
/// Writes the result over `target`.
void map_in_place(Tape& tape, const std::string& name, const Tensor& target,
                  const std::vector<Tensor>& others, double flops = 1);
/// `gradient` summed over the dimensions that broadcasting from `sizes` repeated; itself if none.
Tensor sum_to(Tape& tape, const std::string& name, const Tensor& gradient, const Sizes& sizes);
/// A scalar constant on the device (`torch.full([], v)`): one tiny kernel.
Tensor scalar_constant(Tape& tape, const std::string& name);
Tensor add_into_new(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
void add_in_place(Tape& tape, const std::string& name, const Tensor& target, const Tensor& other);

// Differentiable. Forward bytes; backward bytes.

/// a + b, with broadcasting: 3e (2e for a broadcast operand); backward: no kernel of its own.
Tensor add(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
/// a += b: 3e; the storage of `a` goes on.
Tensor add_(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
/// a * b: 3e; one kernel of 3e per operand.
Tensor multiply(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b);
/// By a Python number: 2e; 2e.
Tensor scale(Tape& tape, const std::string& name, const Tensor& x);
/// By a 0-d tensor: the constant's fill and 2e; 2e.
Tensor divide_by_constant(Tape& tape, const std::string& name, const Tensor& x);
/// Plus a Python number: 2e; nothing.
Tensor add_number(Tape& tape, const std::string& name, const Tensor& x);
/// To another format (`.float()`, `.to()`): both formats once; the same.
Tensor cast(Tape& tape, const std::string& name, const Tensor& x, Precision precision);
/// Negation: 2e; 2e.
Tensor negate(Tape& tape, const std::string& name, const Tensor& x);
/// x^n: 2e; three kernels (pow, times n, times gradient), 7e. Saves x.
Tensor power(Tape& tape, const std::string& name, const Tensor& x);
/// x^(-1/2): 2e; three kernels. Saves the output.
Tensor rsqrt(Tape& tape, const std::string& name, const Tensor& x);
/// 2e; 3e. tanh, sigmoid and relu save the output, gelu and silu the input.
Tensor tanh(Tape& tape, const std::string& name, const Tensor& x);
Tensor sigmoid(Tape& tape, const std::string& name, const Tensor& x);
Tensor relu(Tape& tape, const std::string& name, const Tensor& x);
/// Over `x`, whose values are lost: 2e; 3e. Saves the output.
Tensor relu_(Tape& tape, const std::string& name, const Tensor& x);
Tensor gelu(Tape& tape, const std::string& name, const Tensor& x);
Tensor silu(Tape& tape, const std::string& name, const Tensor& x);
/// Tanh-approximated gelu as Hugging Face composes it: 8 kernels, 18e; 11 kernels, 28e.
Tensor gelu_new(Tape& tape, const std::string& name, const Tensor& x);
/// alpha_p x^2 + beta x above 0, alpha_n (exp(x) - 1 - x) + beta x below, with two trained numbers:
/// 2e; one kernel of 3e, which sums their gradients too. Sources: Huang and Schlag, "Deriving
/// Activation Functions Using Integration", 2025; nickjbrowning/XIELU (recalled).
Tensor xielu(Tape& tape, const std::string& name, const Tensor& x);
/// The activation of a plain feed-forward block; a gated one is composed by its family.
Tensor activate(Tape& tape, const std::string& name, Activation activation, const Tensor& x);
/// torch.where(mask, x, constant): the constant's fill and 2e + mask; the same.
Tensor where(Tape& tape, const std::string& name, const Tensor& mask, const Tensor& x);
/// torch.max(x, constant): 2e; div, eq, where, lt, masked_fill_ = 5 kernels, 9e + 4. Saves x.
Tensor maximum_with_constant(Tape& tape, const std::string& name, const Tensor& x);
/// x.masked_fill_(mask, number): 2e; clone and masked_fill_, 4e.
Tensor masked_fill_(Tape& tape, const std::string& name, const Tensor& x, const Tensor& mask);
/// Mean over the last dimension, which stays with size 1: e of the input; a division per row.
Tensor mean_last(Tape& tape, const std::string& name, const Tensor& x);

}  // namespace tessera

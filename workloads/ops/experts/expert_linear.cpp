#include <span>
#include <utility>

#include "workloads/mixed_precision.h"
#include "workloads/ops/cast_operand.h"
#include "workloads/ops/experts/experts.h"
#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Sizes of a grouped product.
struct GroupedShape {
  std::int64_t m = 0, n = 0, k = 0;
  GemmLayout layout = GemmLayout::tn;
  std::int64_t beside = 0;  ///< framework calls for each expert, beside that of its product
};

Kernel grouped_kernel(const Tape& tape, const GroupedShape& shape,
                      const std::vector<std::int64_t>& loads) {
  Kernel kernel;
  kernel.kind = KernelKind::grouped_gemm;
  kernel.precision = tape.gemm_precision();
  kernel.layout = shape.layout;
  kernel.m = shape.m;
  kernel.n = shape.n;
  kernel.k = shape.k;
  kernel.group_sizes = loads;
  kernel.flops = Flops(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k));
  return kernel;
}

/// While it lives, the host makes so many calls for every launch.
class CallsPerLaunch {
 public:
  CallsPerLaunch(Tape& tape, std::int64_t calls)
      : tape_(tape), before_(tape.set_calls_per_launch(static_cast<int>(calls))) {}
  CallsPerLaunch(const CallsPerLaunch&) = delete;
  CallsPerLaunch& operator=(const CallsPerLaunch&) = delete;
  ~CallsPerLaunch() { tape_.set_calls_per_launch(before_); }

 private:
  Tape& tape_;
  int before_;
};

// What Transformer Engine's grouped linear does on the host for each expert beside its launches, in
// framework calls (recalled). Operands become C++ tensors, and cuBLASLt's descriptors and
// heuristics are made anew (csrc/extensions/gemm.cpp, common/gemm/cublaslt_gemm.cu).
constexpr std::int64_t kProduct = 1;
/// In FP8 and NVFP4, ahead of a product: a quantized tensor, with its buffers, of what comes in;
/// and a weight's, found in the workspaces or taken from those that were saved
/// (quantized_tensor.py).
constexpr std::int64_t kQuantized = 2;
/// Of a weight's gradient: one for autograd that nobody reads, its accumulation, and the hook that
/// drops it (Megatron-Core distributed_data_parallel.py, _make_backward_post_hook).
constexpr std::int64_t kGradient = 3;

/// The products of a layer of experts.
class GroupedLinear {
 public:
  GroupedLinear(Tape& tape, std::string name, const Tensor& x, const Tensor& weight,
                std::vector<std::int64_t> loads, const ExpertLinear& options)
      : name_(std::move(name)),
        x_(x),
        weight_(weight),
        loads_(std::move(loads)),
        each_(options.product_each ? static_cast<std::int64_t>(loads_.size()) : 0),
        parts_(options.casts_each ? loads_ : CastParts{}),
        input_(tape, name_ + ".input", x,
               {.casts = casts(tape), .casts_again = options.casts_again, .parts = parts_}),
        matrix_(tape, name_ + ".weight", weight,
                {.casts = casts(tape),
                 .is_weight = true,
                 .parts = CastParts(options.casts_each ? loads_.size() : 0, 1)}) {}

  Tensor forward(Tape& tape, const std::vector<Tensor>& bias) const {
    const Tensor result = tape.make(name_, StridedShape({rows(), out()}), x_.precision);
    std::vector<Tensor> inputs{input_.rows(), matrix_.rows()};
    inputs.insert(inputs.end(), bias.begin(), bias.end());
    launch(tape, name_, {rows(), out(), in(), GemmLayout::tn, of_input(tape)}, inputs, result);
    return result;
  }

  void backward(Tape& tape, const Tensor& gradient) const {
    const Operand g = casts(tape) ? cast_both_orders(tape, name_ + ".output_grad", gradient, parts_)
                                  : Operand{gradient, gradient};
    const Tensor grad_x = tape.make(name_ + ".dgrad", x_.shape.dense(), x_.precision);
    launch(tape, name_ + ".dgrad", {rows(), in(), out(), GemmLayout::nn, of_input(tape)},
           {g.rows, matrix_.columns(tape)}, grad_x);
    tape.add_gradient(x_, grad_x);
    if (tape.requires_gradient(weight_)) add_weight_gradient(tape, g.columns);
  }

 private:
  static bool casts(const Tape& tape) { return is_cast_for_products(tape.gemm_precision()); }
  std::int64_t rows() const { return x_.sizes()[0]; }
  std::int64_t in() const { return x_.shape.last(); }
  std::int64_t out() const { return weight_.sizes()[1]; }
  static std::int64_t of_input(const Tape& tape) {
    return kProduct + (casts(tape) ? kQuantized : 0);
  }
  void launch(Tape& tape, const std::string& name, const GroupedShape& shape,
              const std::vector<Tensor>& reads, const Tensor& written) const {
    if (casts(tape)) order_scales(tape, name, {reads[0], reads[1]});
    const CallsPerLaunch calls(tape, each_ > 0 ? each_ * (1 + shape.beside) : 1);
    tape.launch(name, grouped_kernel(tape, shape, loads_), reads, std::vector{written});
  }
  void add_weight_gradient(Tape& tape, const Tensor& gradient) const {
    const GroupedShape shape{out(), in(), rows(), GemmLayout::nt, kProduct + kGradient};
    const Tensor columns = input_.columns(tape);
    const Tensor target = tape.accumulation_target(weight_);
    if (target.storage.valid())
      return launch(tape, name_ + ".wgrad", shape, {gradient, columns, target}, target);
    const Tensor made = tape.make(name_ + ".wgrad", weight_.shape, weight_.precision);
    launch(tape, name_ + ".wgrad", shape, {gradient, columns}, made);
    tape.add_gradient(weight_, made);
  }

  std::string name_;
  Tensor x_, weight_;
  std::vector<std::int64_t> loads_;
  std::int64_t each_;  ///< experts that the host launches products for one by one; else 0
  CastParts parts_;    ///< rows that are cast at a time
  SavedOperand input_, matrix_;
};

}  // namespace

Tensor expert_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                     const std::vector<std::int64_t>& loads, const ExpertLinear& options) {
  const auto experts = static_cast<std::int64_t>(loads.size());
  const Tensor weight = tape.expert_parameter(name + ".weight", {experts, out, x.shape.last()});
  std::vector<Tensor> bias;
  if (options.bias) bias.push_back(tape.expert_parameter(name + ".bias", {experts, out}));
  const std::int64_t calls = options.product_each && !options.casts_each ? experts : 1;
  const CallsPerLaunch each(tape, calls);
  const GroupedLinear linear(tape, name, x, weight, loads, options);
  const Tensor result = linear.forward(tape, bias);
  std::vector<Tensor> inputs{x, weight};
  inputs.insert(inputs.end(), bias.begin(), bias.end());
  tape.differentiable(inputs, std::span(&result, 1), [=](Tape& t, auto gradients) {
    const CallsPerLaunch each_backward(t, calls);
    linear.backward(t, gradients[0]);
    if (bias.empty() || !t.requires_gradient(bias.front())) return;
    const CallsPerLaunch each_bias(t, options.product_each ? experts : 1);
    const Tensor sums = t.make(name + ".bias.grad", bias.front().shape, bias.front().precision);
    t.launch(name + ".bias_grad", reduction_kernel(gradients[0]), {gradients[0]}, {sums});
    t.add_gradient(bias.front(), sums);
  });
  return result;
}

}  // namespace tessera

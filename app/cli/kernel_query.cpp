#include "app/cli/kernel_query.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "app/cli/half_query.h"
#include "hw/units/input_error.h"
#include "sim/config/suggest.h"
#include "sim/report/kernel_report.h"
#include "workloads/program/pointwise_flops.h"

namespace tessera {
namespace {

/// A size of an operator, where it goes, and what it may be.
struct SizeOption {
  const char* name;
  std::int64_t KernelMeasurement::*extent = nullptr;  ///< either this
  std::int32_t KernelMeasurement::*window = nullptr;  ///< or this
  std::int64_t least = 1;
  std::optional<std::int64_t> usual = std::nullopt;  ///< where left out; empty = needed
};

using M = KernelMeasurement;
constexpr std::array kProductSizes{SizeOption{"batch", &M::batch, nullptr, 1, 1},
                                   SizeOption{"m", &M::m}, SizeOption{"n", &M::n},
                                   SizeOption{"k", &M::k}};
constexpr std::array kRowSizes{SizeOption{"rows", &M::rows}, SizeOption{"cols", &M::cols}};
constexpr std::array kConvolutionSizes{SizeOption{"batch", &M::batch, nullptr, 1, 1},
                                       SizeOption{"in-channels", &M::k},
                                       SizeOption{"out-channels", &M::n},
                                       SizeOption{"input-size", &M::rows},
                                       SizeOption{"kernel-size", nullptr, &M::window},
                                       SizeOption{"stride", nullptr, &M::stride, 1, 1},
                                       SizeOption{"padding", nullptr, &M::padding, 0, 0}};

// As kernel files have them (predictor/measured/measurements.cpp).
constexpr std::int64_t kMaxExtent = (std::int64_t{1} << 40) - 1;
constexpr std::int64_t kMaxWindow = 1 << 15;
constexpr double kMaxElements = 0x1.0p58;  ///< of a tensor, so that its bytes can be counted

bool is_product(MeasuredOp op) {
  return op == MeasuredOp::linear || op == MeasuredOp::bmm;
}

std::span<const SizeOption> sizes_for(MeasuredOp op) {
  if (is_product(op)) return kProductSizes;
  if (op == MeasuredOp::conv2d) return kConvolutionSizes;
  return kRowSizes;
}

MeasuredOp op_named(const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMeasuredOps; ++i)
    names.emplace_back(name_of(static_cast<MeasuredOp>(i)));
  names.insert(names.end(), {"attention", "grouped_gemm"});
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<MeasuredOp>(found - names.begin());
  throw InputError({.where = "--op",
                    .what = "'" + name + "' is not an operator",
                    .hint = suggestion(name, names)});
}

/// "--m, --n"; optional ones in brackets.
std::string listed_options(std::span<const SizeOption> sizes) {
  std::string text;
  for (const SizeOption& size : sizes) {
    const std::string option = "--" + std::string(size.name);
    text += (text.empty() ? "" : ", ") + (size.usual ? "[" + option + "]" : option);
  }
  return text;
}

/// For each that kernel_of counts: fits of FP32 kernels, which no function's arithmetic limits,
/// count one an element; 16-bit ones go by what a step counts (predictor/fp32/issue_limit.h).
double flops_of_step(MeasuredOp op) {
  if (op == MeasuredOp::gelu) return pointwise_flops::kGelu;
  return op == MeasuredOp::tanh ? pointwise_flops::kTanh : 1;
}

class QueryReader {
 public:
  explicit QueryReader(const KernelOptions& options) : options_(options) {
    call_.op = op_named(options.op);
  }

  KernelQuery read() {
    const std::span<const SizeOption> sizes = sizes_for(call_.op);
    for (const SizeOption& size : sizes) read_size(size);
    refuse_others(sizes);
    if (call_.op == MeasuredOp::conv2d) call_.cols = call_.rows;
    check_layout();
    if (problems_.empty()) check_tensors();
    if (!problems_.empty()) throw InputError(std::move(problems_));
    if (!options_.precision.empty()) call_.precision = parse_precision(options_.precision);
    query_.op = std::string(name_of(call_.op));
    query_.sizes = sizes_of(call_);
    query_.call = call_;
    query_.kernel = kernel_of(call_);
    query_.kernel.flops *= flops_of_step(call_.op);
    if (options_.layout == "tn") query_.kernel.layout = GemmLayout::tn;
    if (options_.layout == "nn") query_.kernel.layout = GemmLayout::nn;
    if (options_.layout == "nt") query_.kernel.layout = GemmLayout::nt;
    return query_;
  }

 private:
  void problem(std::string where, std::string what, std::string hint) {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }

  std::optional<std::int64_t> given(const std::string& name) const {
    const auto found = options_.sizes.find(name);
    return found == options_.sizes.end() ? std::nullopt : found->second;
  }

  void read_size(const SizeOption& size) {
    const auto value = given(size.name) ? given(size.name) : size.usual;
    const std::string where = "--" + std::string(size.name);
    if (!value)
      return problem(where, "is missing",
                     options_.op + " needs " + listed_options(sizes_for(call_.op)));
    const std::int64_t most = size.extent ? kMaxExtent : kMaxWindow;
    if (*value < size.least || *value > most)
      return problem(where, std::to_string(*value) + " is not a size",
                     "a whole number of elements, from " + std::to_string(size.least) + " to " +
                         std::to_string(most));
    if (size.extent)
      call_.*size.extent = *value;
    else
      call_.*size.window = static_cast<std::int32_t>(*value);
  }

  /// A size without effect would be mistaken for one that has some.
  void refuse_others(std::span<const SizeOption> sizes) {
    for (const auto& [name, value] : options_.sizes) {
      const auto used = std::ranges::any_of(
          sizes, [&, &own = name](const SizeOption& size) { return own == size.name; });
      if (value && !used)
        problem("--" + name, options_.op + " has no such size", "it has " + listed_options(sizes));
    }
  }

  void check_layout() {
    if (options_.layout.empty() || is_product(call_.op)) return;
    problem("--layout", options_.op + " has no operand order", "leave it out");
  }

  void check_tensors() {
    const M& call = call_;
    const auto product = [](auto... factors) { return (1.0 * ... * static_cast<double>(factors)); };
    double largest = product(call.rows, call.cols);
    if (is_product(call.op))
      largest = std::max({product(call.batch, call.m, call.k), product(call.batch, call.k, call.n),
                          product(call.batch, call.m, call.n)});
    if (call.op == MeasuredOp::conv2d) {
      const std::int64_t padded = call.rows + 2 * std::int64_t{call.padding};
      if (call.window > padded)
        return problem(
            "--kernel-size",
            "a window of " + std::to_string(call.window) + " does not fit into the padded image",
            "at most input-size + 2 padding = " + std::to_string(padded));
      largest = std::max({product(call.batch, call.k, padded, padded),
                          product(call.batch, call.n, padded, padded),
                          product(call.k, call.n, call.window, call.window)});
    }
    if (largest > kMaxElements)
      problem("sizes", "a tensor holds more than 2^58 elements", "no GPU holds it");
  }

  const KernelOptions& options_;
  KernelQuery query_;
  KernelMeasurement call_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<std::string> size_options() {
  return {"batch",        "m",          "n",           "k",      "rows",    "cols",  "in-channels",
          "out-channels", "input-size", "kernel-size", "stride", "padding", "heads", "kv-heads",
          "head-dim",     "seq",        "seq-kv"};
}

KernelQuery kernel_query(const KernelOptions& options, const GpuSpec& gpu) {
  if (options.op == "attention") return attention_query(options, gpu);
  if (options.op == "grouped_gemm") return grouped_query(options);
  return QueryReader(options).read();
}

}  // namespace tessera

#include "workloads/parallel/update/muon_update.h"

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/sharding.h"

namespace tessera {
namespace {

constexpr int kSteps = 5;          ///< --muon-num-ns-steps
constexpr std::int64_t kBf16 = 2;  ///< bytes

GraphOp op_of(const std::string& name, Kernel kernel, std::int64_t read, std::int64_t written) {
  kernel.precision = Precision::bf16;
  kernel.bytes_read = Bytes(kBf16 * read);
  kernel.bytes_written = Bytes(kBf16 * written);
  GraphOp op;
  op.phase = Phase::optimizer;
  op.name = name;
  op.kernel = kernel;
  return op;
}

GraphOp pass_over(const std::string& name, KernelKind kind, std::int64_t rows, std::int64_t cols,
                  std::int64_t written) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.rows = rows;
  kernel.cols = cols;
  kernel.flops = Flops(2.0 * static_cast<double>(rows) * static_cast<double>(cols));
  return op_of(name, kernel, rows * cols, written);
}

struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  GemmLayout layout = GemmLayout::nn;
  bool adds = true;  ///< a multiple of another matrix [m, n]
};

GraphOp product_of(const std::string& name, const ProductShape& shape) {
  const auto [m, n, k, layout, adds] = shape;
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.layout = layout;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops =
      Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  return op_of(name, kernel, m * k + k * n + (adds ? m * n : 0), m * n);
}

/// Ranks that divide `matrices`.
int ranks_of(const StepOptions& step, const ParameterMatrices& matrices) {
  return matrices.experts ? expert_shard_ranks(step) : shard_ranks(step);
}

/// The product that makes the gradient of a matrix, or of one for each expert.
bool makes_gradient(const GraphOp& op) {
  const KernelKind kind = op.kernel.kind;
  return op.kind == GraphOpKind::kernel && op.name.ends_with(".wgrad") &&
         (kind == KernelKind::grouped_gemm || kind == KernelKind::gemm);
}

}  // namespace

void add_matrices(const ParameterMatrices& matrices, std::vector<ParameterMatrices>& to) {
  const auto same = std::ranges::find_if(to, [&](const ParameterMatrices& other) {
    return other.rows == matrices.rows && other.cols == matrices.cols &&
           other.experts == matrices.experts;
  });
  if (same != to.end()) {
    same->count += matrices.count;
    same->tensors += matrices.tensors;
  } else {
    to.push_back(matrices);
  }
}

std::vector<ParameterMatrices> matrices_of(const Block& block) {
  std::vector<ParameterMatrices> found;
  for (const GraphOp& op : block.backward) {
    if (!makes_gradient(op)) continue;
    const Kernel& kernel = op.kernel;
    const bool experts = kernel.kind == KernelKind::grouped_gemm;
    const auto count = experts ? static_cast<std::int64_t>(kernel.group_sizes.size()) : 1;
    add_matrices({kernel.m, kernel.n, count, experts}, found);
  }
  return found;
}

std::vector<GraphOp> orthogonalizing(const ParameterMatrices& matrices) {
  const auto [m, n] = std::minmax(matrices.rows, matrices.cols);
  std::vector<GraphOp> ops{pass_over("muon.norm", KernelKind::reduction, m, n, 1),
                           pass_over("muon.divide", KernelKind::elementwise, m, n, m * n)};
  for (int step = 0; step < kSteps; ++step) {
    ops.push_back(product_of("muon.square", {m, m, n, GemmLayout::tn, false}));
    ops.push_back(product_of("muon.fourth_power", {m, m, m}));
    ops.push_back(product_of("muon.next", {m, n, m}));
  }
  return ops;
}

std::int64_t own_matrices(const StepOptions& step, const std::vector<ParameterMatrices>& matrices) {
  std::int64_t all = 0, experts = 0;
  for (const ParameterMatrices& shape : matrices) {
    all += shape.elements();
    experts += shape.experts ? shape.elements() : 0;
  }
  return shard_of(step, all, experts);
}

Bytes second_moments(const StepOptions& step, const UpdatedParameters& updated) {
  if (step.mode != StepMode::training) return Bytes(0);
  return Bytes(element_bytes(step.formats.optimizer_states) *
               (updated.parameters - updated.matrices));
}

void MuonUpdate::gather(const std::vector<ParameterMatrices>& matrices, bool experts) {
  std::int64_t elements = 0;
  int ranks = 1;
  for (const ParameterMatrices& shape : matrices) {
    if (shape.experts != experts) continue;
    elements += shape.elements();
    ranks = ranks_of(step_, shape);
  }
  if (ranks == 1) return;
  queue_.collective(OpKind::all_gather, experts ? GroupKind::expert_data : GroupKind::shard,
                    Phase::optimizer, Bytes(kBf16 * elements));
}

void MuonUpdate::run(const std::vector<ParameterMatrices>& matrices) {
  for (const bool experts : {false, true}) gather(matrices, experts);
  for (const ParameterMatrices& shape : matrices) {
    const int ranks = ranks_of(step_, shape);
    const Pass one = library_.cut(orthogonalizing(shape), "muon.orthogonalize");
    for (std::int64_t own = (shape.count + ranks - 1) / ranks; own > 0; --own)
      queue_.run(one, -1, -1);
  }
}

}  // namespace tessera

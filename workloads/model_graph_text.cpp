#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string_view>

#include "workloads/model_graph.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

double megabytes(Bytes bytes) {
  return static_cast<double>(bytes.value()) / 1e6;
}

void print_columns(std::ostream& out, std::string_view name, std::string_view kind,
                   const std::string& shape) {
  out << "  " << std::left << std::setw(38) << name << std::setw(14) << kind << std::setw(40)
      << shape << std::right;
}

void print_op(std::ostream& out, const GraphOp& op) {
  if (op.kind == GraphOpKind::collective) {
    print_columns(out, op.name, label_of(op.collective), "");
    out << std::setw(22) << megabytes(op.bytes) << '\n';
  }
  if (op.kind != GraphOpKind::kernel) return;
  const std::string name = op.recomputed ? op.name + " (again)" : op.name;
  print_columns(out, name, label_of(op.kernel.kind), shape_label(op.kernel));
  out << std::setw(10) << op.kernel.flops.value() / 1e9 << std::setw(12)
      << megabytes(op.kernel.bytes()) << std::setw(12) << megabytes(op.allocated) << std::setw(12)
      << megabytes(op.freed) << '\n';
}

void print_ops(std::ostream& out, const char* direction, const std::vector<GraphOp>& ops) {
  if (ops.empty()) return;
  const OpTotals totals = total(ops);
  out << ' ' << direction << ": " << totals.kernels << " kernels, "
      << totals.gemm_flops.value() / 1e9 << " GFLOP in GEMMs, " << megabytes(totals.bytes)
      << " MB moved\n";
  print_columns(out, "operator", "kernel", "shape");
  out << std::setw(10) << "GFLOP" << std::setw(12) << "MB moved" << std::setw(12) << "MB made"
      << std::setw(12) << "MB freed" << '\n';
  for (const GraphOp& op : ops) print_op(out, op);
}

}  // namespace

std::string to_text(const ModelGraph& graph) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3);
  for (std::size_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    const auto times = std::count(graph.order.begin(), graph.order.end(), static_cast<int>(b));
    out << block.name << " (x " << times << "): " << block.parameters << " parameters, "
        << megabytes(block.saved) << " MB saved for backward, " << megabytes(block.buffers)
        << " MB of buffers\n";
    print_ops(out, "forward", block.forward);
    print_ops(out, "backward", block.backward);
  }
  return out.str();
}

}  // namespace tessera

#include "workloads/ops/experts/token_exchange.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hw/units/hypergeometric.h"
#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Transformer Engine's row map of permute_with_mask_map takes three passes, behind the expansion
/// of indices to a mask (common/triton/permutation.py; Megatron-Core fused_indices_converter.py).
constexpr int kMapKernels = 4;

Tensor exchanged(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count) {
  const Tensor received = tape.make(name, StridedShape({count, rows.shape.last()}), rows.precision);
  tape.collective(OpKind::all_to_all, name, GroupKind::expert, rows, received);
  tape.wait();
  return received;
}

/// One row per token and expert of each of `tokens`, or back: moves the rows of the longer one.
Tensor reordered(Tape& tape, const std::string& name, const Tensor& from, std::int64_t count) {
  const Tensor to = tape.make(name, StridedShape({count, from.shape.last()}), from.precision);
  const Tensor& longer = from.sizes()[0] > count ? from : to;
  tape.launch(name, pointwise_kernel(longer, 0, KernelKind::gather), {from}, {to});
  return to;
}

/// What all ranks send to whom; the exchange waits for it, whoever computes beside it does not.
Tensor gathered_marks(Tape& tape, const std::string& name, const Tensor& own, std::int64_t ranks) {
  const std::int64_t tokens = own.sizes()[0], experts = own.sizes()[1];
  const Tensor all =
      tape.make(name + ".layout.all", StridedShape({ranks * tokens, experts}), Precision::int8);
  tape.collective(OpKind::all_gather, name + ".layout.all_gather", GroupKind::expert, own, all);
  tape.wait();
  return all;
}

}  // namespace

std::int64_t arriving_tokens(const ExpertGroup& group, std::int64_t tokens, std::int64_t experts,
                             std::int64_t k) {
  const double chance = chance_of_meeting(static_cast<double>(group.experts), experts, k);
  const double share = static_cast<double>(group.rows) / static_cast<double>(tokens * k);
  const auto expected = std::llround(static_cast<double>(tokens * group.ranks) * chance * share);
  return std::clamp<std::int64_t>(expected, 1, std::min(group.rows, tokens * group.ranks));
}

Tensor dispatch_tokens(Tape& tape, const std::string& name, const Tensor& x,
                       const ChosenExperts& choice, const ExpertGroup& group,
                       const TokenDispatch& dispatch) {
  const Tensor counts = tape.make(name + ".counts", StridedShape({group.ranks}), Precision::int64);
  tape.launch(name + ".layout", reduction_kernel(choice.experts), {choice.experts}, {counts});
  std::optional<Tensor> marks;
  if (dispatch.gathers_map) marks = gathered_marks(tape, name, choice.marks, group.ranks);
  if (dispatch.host_waits) tape.host_sync(name + ".counts");
  const std::int64_t arriving = dispatch.arriving;
  const Tensor arrived = exchanged(tape, name + ".exchange", x, arriving);
  if (marks) tape.launch(name + ".layout.scan", reduction_kernel(*marks), {*marks}, {});
  const Tensor map =
      tape.make(name + ".map", StridedShape({arriving, group.experts}), Precision::int64);
  for (int pass = 0; pass < kMapKernels; ++pass)
    tape.launch(name + ".map", pointwise_kernel(map, 1), {counts}, {map});
  const Tensor rows = reordered(tape, name + ".permute", arrived, group.rows);
  const std::int64_t tokens = x.sizes()[0];
  tape.differentiable({x}, rows, [=](Tape& t, auto gradients) {
    const Tensor sums = reordered(t, name + ".permute.backward", gradients[0], arriving);
    t.add_gradient(x, exchanged(t, name + ".exchange.backward", sums, tokens));
  });
  return rows;
}

Tensor return_tokens(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t tokens,
                     std::int64_t arriving) {
  const Tensor sums = reordered(tape, name + ".unpermute", rows, arriving);
  const Tensor out = exchanged(tape, name + ".exchange", sums, tokens);
  const std::int64_t count = rows.sizes()[0];
  tape.differentiable({rows}, out, [=](Tape& t, auto gradients) {
    const Tensor arrived = exchanged(t, name + ".exchange.backward", gradients[0], arriving);
    t.add_gradient(rows, reordered(t, name + ".unpermute.backward", arrived, count));
  });
  return out;
}

}  // namespace tessera

#include "workloads/ops/experts/experts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "workloads/ops/linear.h"
#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// Copies rows between the order of tokens and that of experts.
Kernel row_move(const Tensor& rows) {
  return pointwise_kernel(rows, 0, KernelKind::gather);
}

/// A number or a mark for every token and expert, in kernels of their own.
void launch_over(Tape& tape, const std::string& name, const Tensor& from, const Tensor& to,
                 const std::vector<const char*>& kernels) {
  for (const char* kernel : kernels)
    tape.launch(name + kernel, pointwise_kernel(to, 0), {from}, {to});
}

}  // namespace

std::vector<std::int64_t> expert_loads(std::int64_t rows, std::int64_t experts, double imbalance) {
  assert(imbalance >= 1 && experts >= 1);
  const double mean = static_cast<double>(rows) / static_cast<double>(experts);
  const std::int64_t first =
      std::min(rows, static_cast<std::int64_t>(std::llround(mean * imbalance)));
  std::vector<std::int64_t> loads{first};
  std::int64_t left = rows - first;
  for (std::int64_t others = experts - 1; others > 0; --others) {
    loads.push_back((left + others - 1) / others);
    left -= loads.back();
  }
  return loads;
}

ExpertGroup busiest_expert_rank(std::int64_t rows, std::int64_t experts, std::int64_t ranks,
                                double imbalance, std::int64_t parts) {
  ExpertGroup group{
      .ranks = ranks, .experts = experts / ranks, .rows = 0, .loads = {}, .parts = parts};
  group.loads = expert_loads(rows * ranks, experts, imbalance);
  group.loads.resize(static_cast<std::size_t>(group.experts));
  for (std::int64_t& load : group.loads) load *= parts;
  group.rows = std::accumulate(group.loads.begin(), group.loads.end(), std::int64_t{0});
  return group;
}

namespace {

/// What the choice of experts reads: scores, corrected and within the best groups. Source:
/// Megatron-Core transformer/moe/moe_utils.py, group_limited_topk.
Tensor scores_for_choice(Tape& tape, const std::string& name, const Tensor& scores,
                         const Scoring& scoring) {
  Tensor choice = scores;
  if (scoring.correction) {
    const Tensor bias = tape.buffer(name + ".correction", {scores.shape.last()}, Precision::fp32);
    choice = map(tape, name + ".correct", {scores, bias});
  }
  if (scoring.groups == 0) return choice;
  const Sizes sizes{scores.sizes()[0], scoring.groups};
  const Tensor best = tape.make(name + ".groups", StridedShape(sizes), Precision::fp32);
  tape.launch(name + ".groups.top_2", reduction_kernel(choice), {choice}, {best});
  const Tensor mask = tape.make(name + ".groups.mask", StridedShape(sizes), Precision::fp32);
  for (const char* part : {".groups.top_k", ".groups.mask"})
    tape.launch(name + part, pointwise_kernel(mask, 1), {best}, {mask});
  const Tensor masked = tape.make(name + ".groups.scores", scores.shape, Precision::fp32);
  tape.launch(name + ".groups.fill", pointwise_kernel(masked, 1), {choice, mask}, {masked});
  return masked;
}

/// The weights of the chosen experts among zeros, and a mark for each: torch.zeros_like, a copy of
/// it that scatter() makes, and the scatter; of the marks also casts from and to bool. Source:
/// Megatron-Core transformer/moe/moe_utils.py, topk_routing_with_score_function.
Tensor write_maps(Tape& tape, const std::string& name, const Tensor& scores, const Tensor& best) {
  const Tensor weights = tape.make(name + ".map.weights", scores.shape, Precision::fp32);
  launch_over(tape, name, best, weights, {".map.zeros", ".map.copy", ".map.scatter"});
  const Tensor marks = tape.make(name + ".map.marks", scores.shape, Precision::int8);
  launch_over(tape, name, best, marks,
              {".map.zeros", ".map.cast", ".map.copy", ".map.scatter", ".map.cast"});
  return marks;
}

/// Scores, groups and choice in one kernel over the logits; backward likewise.
ChosenExperts choose_fused(Tape& tape, const std::string& name, const Tensor& logits,
                           std::int64_t k) {
  const std::int64_t tokens = logits.sizes()[0];
  const Tensor best = tape.make(name + ".top_k", StridedShape({tokens, k}), Precision::fp32);
  const Tensor chosen = tape.make(name + ".chosen", StridedShape({tokens, k}), Precision::int64);
  const Tensor marks = tape.make(name + ".map.marks", logits.shape.dense(), Precision::int8);
  tape.launch(name + ".top_k", reduction_kernel(logits), {logits}, {best, chosen, marks});
  tape.differentiable({logits}, best, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".top_k.grad", logits.shape, logits.precision);
    t.launch(name + ".top_k.backward", pointwise_kernel(grad, 1), {gradients[0], chosen, logits},
             {grad});
    t.add_gradient(logits, grad);
  });
  return {best, chosen, marks};
}

}  // namespace

ChosenExperts score_experts(Tape& tape, const std::string& name, const Tensor& x,
                            std::int64_t experts, std::int64_t k, const Scoring& scoring) {
  const std::int64_t tokens = x.sizes()[0];
  const Tensor weight = tape.parameter(name + ".weight", {experts, x.shape.last()});
  LinearLayer layer{.full_precision = true};
  if (scoring.bias) layer.bias = tape.parameter(name + ".bias", {experts});
  const Tensor logits = linear_matrix(tape, name, x, weight, layer);
  if (scoring.fused) return choose_fused(tape, name, logits, k);
  const Tensor exact = cast(tape, name + ".float", logits, Precision::fp32);
  const Tensor scores = scoring.sigmoid ? sigmoid(tape, name + ".sigmoid", exact)
                                        : softmax(tape, name + ".softmax", exact);
  const Tensor choice = scores_for_choice(tape, name, scores, scoring);
  const Tensor best = tape.make(name + ".top_k", StridedShape({tokens, k}), Precision::fp32);
  const Tensor chosen = tape.make(name + ".chosen", StridedShape({tokens, k}), Precision::int64);
  tape.launch(name + ".top_k", reduction_kernel(choice), {choice}, {best, chosen});
  tape.launch(name + ".top_k.sort", pointwise_kernel(best, 1), {best}, {best, chosen});
  const Tensor marks = write_maps(tape, name, scores, best);
  tape.differentiable({scores}, best, [=](Tape& t, auto gradients) {
    const Tensor weights = t.make(name + ".map.grad", best.shape, Precision::fp32);
    t.launch(name + ".map.backward", pointwise_kernel(weights, 0, KernelKind::gather),
             {gradients[0], chosen}, {weights});
    const Tensor grad = t.make(name + ".top_k.grad", scores.shape, Precision::fp32);
    t.launch(name + ".top_k.zero", pointwise_kernel(grad, 0, KernelKind::fill), {}, {grad});
    t.launch(name + ".top_k.backward", pointwise_kernel(grad, 1, KernelKind::scatter),
             {weights, chosen}, {grad});
    t.add_gradient(scores, grad);
  });
  return {best, chosen, marks};
}

RoutedTokens route_to_experts(Tape& tape, const std::string& name, const Tensor& x,
                              std::int64_t experts, std::int64_t k, std::int64_t capacity,
                              int tensor, const Scoring& scoring) {
  const ChosenExperts choice = score_experts(tape, name, x, experts, k, scoring);
  const Permutation permutation{.experts = experts, .capacity = capacity, .tensor = tensor};
  return {permute_to_experts(tape, name, x, choice, permutation), choice.probabilities};
}

namespace {

/// A token's weights on the ranks of its experts, as many as the rank's own.
void exchange_weights(Tape& tape, const std::string& name, const Tensor& weights,
                      const ExpertGroup& group) {
  const Tensor there = tape.make(name, weights.shape.dense(), weights.precision);
  if (group.ranks > 1) tape.collective(OpKind::all_to_all, name, GroupKind::expert, weights, there);
  if (group.parts == 1) return;
  const Sizes all{weights.sizes()[0] * group.parts, weights.shape.last()};
  tape.collective(OpKind::all_gather, name + ".all_gather", GroupKind::expert_tensor, there,
                  tape.make(name + ".all", StridedShape(all), weights.precision));
}

/// Gradients of weights on their way back.
void return_weights(Tape& tape, const std::string& name, const Tensor& weights,
                    const ExpertGroup& group) {
  if (!group.exchanges()) return;
  const Tensor back = tape.make(name, weights.shape.dense(), weights.precision);
  if (group.parts > 1) {
    const Sizes all{weights.sizes()[0] * group.parts, weights.shape.last()};
    tape.collective(OpKind::reduce_scatter, name + ".reduce_scatter", GroupKind::expert_tensor,
                    tape.make(name + ".all", StridedShape(all), weights.precision), back);
  }
  if (group.ranks > 1)
    tape.collective(OpKind::all_to_all, name + ".all_to_all", GroupKind::expert, weights, back);
}

Tensor rows_like(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count) {
  return tape.make(name, StridedShape({count, rows.shape.last()}), rows.precision);
}

/// To the ranks of the experts: an all-to-all, and a gather where several hold parts of them.
Tensor sent_rows(Tape& tape, const std::string& name, const Tensor& rows, const ExpertGroup& group,
                 const char* suffix, const Tensor* weights = nullptr) {
  Tensor arrived = rows;
  if (group.ranks > 1) {
    arrived = rows_like(tape, name + ".all_to_all" + suffix, rows, group.arriving());
    tape.collective(OpKind::all_to_all, name + ".all_to_all" + suffix, GroupKind::expert, rows,
                    arrived);
  }
  if (weights != nullptr) exchange_weights(tape, name + ".all_to_all.weights", *weights, group);
  if (group.ranks > 1) tape.wait();
  if (group.parts == 1) return arrived;
  const Tensor all = rows_like(tape, name + ".all_gather" + suffix, rows, group.rows);
  tape.collective(OpKind::all_gather, name + ".all_gather" + suffix, GroupKind::expert_tensor,
                  arrived, all);
  tape.wait();
  return all;
}

/// And back, `count` of them.
Tensor returned_rows(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count,
                     const ExpertGroup& group, const char* suffix) {
  Tensor own = rows;
  if (group.parts > 1) {
    own = rows_like(tape, name + ".reduce_scatter" + suffix, rows, group.arriving());
    tape.collective(OpKind::reduce_scatter, name + ".reduce_scatter" + suffix,
                    GroupKind::expert_tensor, rows, own);
    tape.wait();
  }
  if (group.ranks == 1) return own;
  const Tensor back = rows_like(tape, name + ".all_to_all" + suffix, rows, count);
  tape.collective(OpKind::all_to_all, name + ".all_to_all" + suffix, GroupKind::expert, own, back);
  tape.wait();
  return back;
}

/// Rows of several ranks' tokens by expert, or back.
Tensor sorted_rows(Tape& tape, const std::string& name, const Tensor& rows) {
  const Tensor sorted = tape.make(name, rows.shape.dense(), rows.precision);
  tape.launch(name, row_move(rows), {rows}, {sorted});
  return sorted;
}

}  // namespace

Tensor dispatch_rows(Tape& tape, const std::string& name, const Tensor& rows,
                     const ExpertGroup& group, const Tensor* weights) {
  if (!group.exchanges()) return rows;
  const std::int64_t sent = rows.sizes()[0];
  const Tensor received = sent_rows(tape, name, rows, group, "", weights);
  const bool sorts = group.experts > 1;
  const Tensor out = sorts ? sorted_rows(tape, name + ".sort", received) : received;
  tape.differentiable({rows}, out, [=](Tape& t, auto gradients) {
    const Tensor grad =
        sorts ? sorted_rows(t, name + ".sort.backward", gradients[0]) : gradients[0];
    t.add_gradient(rows, returned_rows(t, name, grad, sent, group, ".backward"));
  });
  return out;
}

Tensor return_rows(Tape& tape, const std::string& name, const Tensor& rows, std::int64_t count,
                   const ExpertGroup& group) {
  if (!group.exchanges()) return rows;
  const bool sorts = group.experts > 1;
  const Tensor ordered = sorts ? sorted_rows(tape, name + ".sort", rows) : rows;
  const Tensor out = returned_rows(tape, name, ordered, count, group, "");
  tape.differentiable({rows}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = sent_rows(t, name, gradients[0], group, ".backward");
    t.add_gradient(rows, sorts ? sorted_rows(t, name + ".sort.backward", grad) : grad);
  });
  return out;
}

Tensor weighted_rows(Tape& tape, const std::string& name, const Tensor& rows,
                     const Tensor& probabilities, const ExpertGroup& group) {
  const Tensor out = tape.alias(rows, rows.shape);
  tape.differentiable({rows, probabilities}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".weights.grad", probabilities.shape, Precision::fp32);
    t.launch(name + ".weights.backward", pointwise_kernel(grad, 1), {probabilities}, {grad});
    return_weights(t, name + ".weights.backward", grad, group);
    t.add_gradient(rows, gradients[0]);
    t.add_gradient(probabilities, grad);
  });
  return out;
}

Tensor weigh_rows(Tape& tape, const std::string& name, const Tensor& rows,
                  const Tensor& probabilities, const ExpertGroup& group) {
  const auto launched = [rows](Tape& t, const std::string& part, const std::vector<Tensor>& reads,
                               Precision precision) {
    const Tensor out = t.make(part, rows.shape.dense(), precision);
    t.launch(part, pointwise_kernel(out, 1), reads, std::vector{out});
    return out;
  };
  const auto converted = [=](Tape& t, const std::string& part, const Tensor& x, Precision to) {
    return x.precision == to ? x : launched(t, part, {x}, to);
  };
  const std::string weigh = name + ".weigh";
  const Tensor exact = launched(tape, weigh, {rows, probabilities}, Precision::fp32);
  const Tensor out = converted(tape, weigh + ".to", exact, rows.precision);
  tape.differentiable({rows, probabilities}, out, [=](Tape& t, auto gradients) {
    const Tensor wide = converted(t, weigh + ".to.backward", gradients[0], Precision::fp32);
    const Tensor of_rows =
        launched(t, weigh + ".times_weights", {wide, probabilities}, Precision::fp32);
    t.add_gradient(rows, converted(t, weigh + ".rows.to", of_rows, rows.precision));
    const Tensor product = launched(t, weigh + ".times_rows", {wide, rows}, Precision::fp32);
    const Tensor grad = t.make(name + ".weights.grad", probabilities.shape, Precision::fp32);
    t.launch(weigh + ".weights.sum", reduction_kernel(product), {product}, {grad});
    return_weights(t, name + ".weights.backward", grad, group);
    t.add_gradient(probabilities, grad);
  });
  return out;
}

Tensor combine_experts(Tape& tape, const std::string& name, const Tensor& results,
                       const RoutedTokens& routed, const Sizes& sizes) {
  const Tensor out = tape.make(name, StridedShape(sizes), results.precision);
  const Tensor probabilities = routed.probabilities;
  tape.launch(name, row_move(results), {results, probabilities}, {out});
  tape.differentiable({results, probabilities}, out, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", results.shape.dense(), results.precision);
    const Tensor grad_p =
        t.make(name + ".probabilities.grad", probabilities.shape, Precision::fp32);
    t.launch(name + ".backward", row_move(results), {gradients[0], results, probabilities},
             {grad, grad_p});
    t.add_gradient(results, grad);
    t.add_gradient(probabilities, grad_p);
  });
  return out;
}

}  // namespace tessera

#include "workloads/ops/attention/chosen_tokens.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/chunk_products.h"

namespace tessera {
namespace {

constexpr Precision kIndices = Precision::fp32;  // 32-bit integers, of as many bytes

/// Tensors of one call, the same in both directions.
class ChosenAttention {
 public:
  ChosenAttention(std::string name, LatentOperands latent, IndexOperands index, ChosenTokens chosen)
      : name_(std::move(name)),
        latent_(std::move(latent)),
        index_(std::move(index)),
        chosen_(chosen) {}

  Tensor forward(Tape& tape) {
    choose(tape);
    attend(tape);
    if (chosen_.learns) sum_heads(tape);
    return out_;
  }
  void backward(Tape& tape, const Tensor& gradient) const {
    attend_backward(tape, gradient);
    if (chosen_.learns) learn(tape);
  }

 private:
  std::int64_t positions() const { return latent_.q.sizes()[0]; }
  std::int64_t tokens() const { return positions() * latent_.q.sizes()[1]; }
  std::int64_t width() const { return latent_.q.shape.last(); }
  Sizes rows_of_chosen() const { return {tokens(), std::min(chosen_.topk, positions())}; }
  Tensor make(Tape& tape, const std::string& part, const Sizes& sizes, Precision precision) const {
    return tape.make(name_ + part, StridedShape(sizes), precision);
  }
  Tensor like(Tape& tape, const Tensor& x, Precision precision) const {
    return tape.make(tape.name_of(x) + ".grad", x.shape.dense(), precision);
  }
  /// `macs` for each pair of a head of `heads` and a token of `seen`.
  ChunkProducts pairs(const Tensor& heads, std::int64_t seen, std::int64_t macs) const {
    return {tokens(), heads.sizes()[2], seen, macs};
  }
  std::int64_t seen() const { return mean_chosen(positions(), chosen_.topk); }

  void choose(Tape& tape) {
    tokens_ = make(tape, ".chosen", rows_of_chosen(), kIndices);
    std::vector<Tensor> writes{tokens_};
    if (chosen_.learns) {
      scores_ = make(tape, ".index.scores", rows_of_chosen(), Precision::fp32);
      writes.push_back(scores_);
    }
    const std::int64_t all = mean_chosen(positions(), positions());
    launch_products(tape, name_ + ".index", pairs(index_.q, all, index_.q.shape.last()),
                    {index_.q, index_.k, index_.weights}, writes);
  }
  void attend(Tape& tape) {
    Sizes sizes = latent_.q.sizes();
    sizes.back() = chosen_.rank;
    out_ = make(tape, "", sizes, latent_.q.precision);
    sums_ = make(tape, ".log_sum_exp", {tokens(), sizes[2]}, Precision::fp32);
    launch_products(tape, name_, pairs(latent_.q, seen(), width() + chosen_.rank),
                    {latent_.q, latent_.kv, tokens_}, {out_, sums_});
  }
  void sum_heads(Tape& tape) {
    target_ = make(tape, ".index.target", rows_of_chosen(), Precision::fp32);
    launch_products(tape, name_ + ".target", pairs(latent_.q, seen(), width()),
                    {latent_.q, latent_.kv, tokens_, sums_}, {target_});
    tensor_all_reduce(tape, name_ + ".target.all_reduce", target_, chosen_.tensor);
  }
  /// Zeros that a kernel adds to by atomic additions.
  Tensor zeros(Tape& tape, const std::string& part, const Tensor& x) const {
    const Tensor sum = make(tape, part, x.sizes(), Precision::fp32);
    tape.launch(name_ + part + ".zero", pointwise_kernel(sum, 0, KernelKind::fill), {}, {sum});
    return sum;
  }
  void add_cast(Tape& tape, const Tensor& operand, const Tensor& sum) const {
    const Tensor gradient = like(tape, operand, operand.precision);
    tape.launch(tape.name_of(sum) + ".cast", pointwise_kernel(gradient, 0), {sum}, {gradient});
    tape.add_gradient(operand, gradient);
  }
  void attend_backward(Tape& tape, const Tensor& gradient) const {
    const Tensor deltas = make(tape, ".deltas", sums_.sizes(), Precision::fp32);
    tape.launch(name_ + ".deltas", reduction_kernel(out_), {out_, gradient}, {deltas});
    const Tensor of_q = like(tape, latent_.q, latent_.q.precision);
    const Tensor of_kv = zeros(tape, ".kv.sum", latent_.kv);
    launch_products(tape, name_ + ".backward",
                    pairs(latent_.q, seen(), 3 * width() + 2 * chosen_.rank),
                    {latent_.q, latent_.kv, gradient, tokens_, sums_, deltas}, {of_q, of_kv});
    tape.add_gradient(latent_.q, of_q);
    add_cast(tape, latent_.kv, of_kv);
  }
  void learn(Tape& tape) const {
    const Tensor of_q = like(tape, index_.q, index_.q.precision);
    const Tensor of_weights = like(tape, index_.weights, index_.weights.precision);
    const Tensor of_k = zeros(tape, ".index.k.sum", index_.k);
    launch_products(
        tape, name_ + ".index.backward", pairs(index_.q, seen(), 3 * index_.q.shape.last()),
        {index_.q, index_.k, index_.weights, tokens_, scores_, target_}, {of_q, of_weights, of_k});
    tape.add_gradient(index_.q, of_q);
    tape.add_gradient(index_.weights, of_weights);
    add_cast(tape, index_.k, of_k);
  }

  std::string name_;
  LatentOperands latent_;
  IndexOperands index_;
  ChosenTokens chosen_;
  Tensor tokens_, scores_, out_, sums_, target_;
};

}  // namespace

std::int64_t mean_chosen(std::int64_t positions, std::int64_t topk) {
  const auto all = static_cast<double>(positions);
  const double most = std::min(static_cast<double>(topk), all);
  return std::max<std::int64_t>(1, std::llround(most - most * most / (2 * all)));
}

Tensor attention_to_chosen(Tape& tape, const std::string& name, const LatentOperands& latent,
                           const IndexOperands& index, const ChosenTokens& chosen) {
  ChosenAttention attention(name, latent, index, chosen);
  const Tensor out = attention.forward(tape);
  std::vector<Tensor> inputs{latent.q, latent.kv};
  if (chosen.learns)
    for (const Tensor& operand : {index.q, index.k, index.weights}) inputs.push_back(operand);
  tape.differentiable(inputs, std::span(&out, 1), [attention](Tape& t, auto gradients) {
    attention.backward(t, gradients[0]);
  });
  return out;
}

Tensor hadamard(Tape& tape, const std::string& name, const Tensor& x) {
  const double additions = std::log2(static_cast<double>(x.shape.last()));
  const auto turned = [=](Tape& t, const std::string& kernel_name, const Tensor& from) {
    const Tensor out = t.make(kernel_name, from.shape.dense(), from.precision);
    t.launch(kernel_name, pointwise_kernel(out, additions), {from}, {out});
    return out;
  };
  const Tensor out = turned(tape, name, x);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(x, turned(t, name + ".backward", gradients[0]));
  });
  return out;
}

}  // namespace tessera

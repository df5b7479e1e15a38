#include "workloads/parallel/update/dealt_tensors.h"

#include <algorithm>
#include <cstddef>

#include "workloads/optimizers/multi_tensor.h"

namespace tessera {
namespace {

/// A tensor that is dealt: a matrix of `kind`, or behind the last kind another one.
struct Card {
  std::size_t kind = 0;
  std::int64_t elements = 0;
  double flops = 0;
};

/// What makes one orthogonal.
double flops_of(const ParameterMatrices& matrix) {
  const auto [m, n] = std::minmax(matrix.rows, matrix.cols);
  return static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(m + 2 * n);
}

/// What a replica holds of them.
struct Hand {
  std::vector<std::int64_t> counts;  ///< by kind
  double flops = 0;
  std::int64_t matrices = 0, others = 0;  ///< parameters
};

std::vector<Card> cards_of(const std::vector<ParameterMatrices>& matrices,
                           const std::vector<std::int64_t>& others) {
  std::vector<Card> cards;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const ParameterMatrices& of = matrices[i];
    cards.insert(cards.end(), static_cast<std::size_t>(of.count),
                 {i, of.rows * of.cols, flops_of(of)});
  }
  for (const std::int64_t elements : others) cards.push_back({matrices.size(), elements, 0});
  std::ranges::stable_sort(cards, {}, &Card::elements);
  return cards;
}

/// 0, 1, .., n - 1, n - 1, .., 1, 0 and again.
std::size_t turn_of(std::size_t card, std::size_t hands) {
  const std::size_t place = card % (2 * hands);
  return place < hands ? place : 2 * hands - 1 - place;
}

Bytes states_of(const StepOptions& step, const Hand& hand) {
  return state_bytes(step, hand.matrices + hand.others)[MemoryCategory::optimizer] +
         Bytes(element_bytes(step.formats.optimizer_states) * hand.others);
}

DealtTensors deal(const StepOptions& step, int ranks,
                  const std::vector<ParameterMatrices>& matrices,
                  const std::vector<std::int64_t>& others) {
  DealtTensors result{.ranks = ranks};
  std::vector<Hand> hands(static_cast<std::size_t>(ranks));
  for (Hand& hand : hands) hand.counts.resize(matrices.size() + 1);
  const std::vector<Card> cards = cards_of(matrices, others);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    Hand& hand = hands[turn_of(i, hands.size())];
    ++hand.counts[cards[i].kind];
    hand.flops += cards[i].flops;
    (cards[i].kind < matrices.size() ? hand.matrices : hand.others) += cards[i].elements;
    result.all += cards[i].elements;
  }
  result.all_tensors = static_cast<std::int64_t>(cards.size());
  const Hand& busiest = *std::ranges::max_element(hands, {}, &Hand::flops);
  for (std::size_t i = 0; i < busiest.counts.size(); ++i) {
    result.tensors += busiest.counts[i];
    if (i >= matrices.size() || busiest.counts[i] == 0) continue;
    result.matrices.push_back(matrices[i]);
    result.matrices.back().count = busiest.counts[i];
  }
  result.others = busiest.others;
  for (const Hand& hand : hands) result.states = std::max(result.states, states_of(step, hand));
  return result;
}

}  // namespace

std::int64_t DealtTensors::matrix_elements() const {
  std::int64_t sum = 0;
  for (const ParameterMatrices& shape : matrices) sum += shape.elements();
  return sum;
}

std::array<DealtTensors, 2> deal_tensors(const StepOptions& step,
                                         const std::vector<ParameterMatrices>& matrices,
                                         const std::vector<std::int64_t>& others) {
  std::vector<ParameterMatrices> dense, experts;
  for (const ParameterMatrices& shape : matrices)
    (shape.experts ? experts : dense).push_back(shape);
  std::array<DealtTensors, 2> dealt{deal(step, step.layout.replicas(), dense, others),
                                    deal(step, step.layout.expert_replicas(), experts, {})};
  dealt[1].experts = true;
  return dealt;
}

void gather_dealt(PassLibrary& library, const StepOptions& step, OpQueue& queue,
                  const DealtTensors& dealt) {
  if (dealt.ranks == 1 || dealt.all == 0) return;
  const std::int64_t format = element_bytes(step.formats.parameters);
  const auto copy = [&](const char* name, std::int64_t elements, std::int64_t tensors) {
    GraphOp op =
        buffer_pass(name, Phase::optimizer, KernelKind::elementwise, elements, {format, format});
    op.host_calls = static_cast<int>(std::max<std::int64_t>(1, tensors));
    return op;
  };
  GraphOp flatten = copy("parameters.flatten", dealt.own(), 1);
  flatten.allocated = Bytes(format * dealt.own());
  queue.run(library.cut({flatten}, "parameters.flatten"), -1, -1);
  queue.allocate(Bytes(format * dealt.all));
  queue.collective(OpKind::all_gather, dealt.experts ? GroupKind::expert_data : GroupKind::data,
                   Phase::optimizer, Bytes(format * dealt.all));
  GraphOp unflatten =
      copy("parameters.unflatten", dealt.all - dealt.own(), dealt.all_tensors - dealt.tensors);
  unflatten.freed = flatten.allocated;
  queue.run(library.cut({unflatten}, "parameters.unflatten"), -1, -1);
  queue.free(Bytes(format * dealt.all));
}

}  // namespace tessera

#include "lab/fit/attention/attention_transfer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "hw/units/formatted.h"
#include "lab/fit/attention/attention_errors.h"

namespace tessera {
namespace {

constexpr std::int64_t kHeadDim = 128;  ///< the one that both GPUs were measured at
constexpr std::array<std::int64_t, 3> kLeastKeys{128, 512, 2048};
constexpr std::size_t kDraws = 5;

struct Transfer {
  const char* from;
  const char* to;
};
constexpr std::array<Transfer, 4> kTransfers{
    {{"sglang/flash_attention", "vllm/vllm_flash_attn_fa3"},
     {"vllm/vllm_flash_attn", "vllm/vllm_flash_attn_fa3"},
     {"vllm/vllm_flash_attn_fa3", "sglang/flash_attention"},
     {"vllm/vllm_flash_attn_fa3", "vllm/vllm_flash_attn"}}};

/// Mean errors over the calls of at least kLeastKeys keys [%].
using Errors = std::array<double, kLeastKeys.size()>;

std::size_t position(const std::vector<AttentionGroup>& groups, const std::string& stack) {
  const auto found = std::ranges::find_if(groups, [&](const AttentionGroup& group) {
    return group.stack == stack && !group.full_alone;
  });
  return static_cast<std::size_t>(found - groups.begin());
}

/// `number` calls of 20 us and longer that may be fitted to, spread over the file.
std::vector<const AttentionMeasurement*> drawn(const AttentionGroup& group, std::size_t number,
                                               std::size_t draw) {
  std::vector<const AttentionMeasurement*> all, some;
  for (const AttentionMeasurement* row : group.rows)
    if (!row->held_out && row->seconds >= 20e-6 && row->call.head_dim == kHeadDim &&
        row->call.seq_kv >= kLeastKeys[0])
      all.push_back(row);
  const std::size_t step = all.size() / number, offset = draw * step / kDraws;
  for (std::size_t i = 0; i < number; ++i) some.push_back(all[offset + i * step]);
  return some;
}

Errors errors_of(const AttentionGroup& to, const AttentionVector& x) {
  const auto p = AttentionParameters<double>::from_unconstrained(std::span<const double>(x));
  Errors errors{};
  for (std::size_t i = 0; i < kLeastKeys.size(); ++i) {
    double sum = 0, n = 0;
    for (const AttentionMeasurement* row : judged_rows(to, kLeastKeys[i])) {
      if (row->call.head_dim != kHeadDim) continue;
      const double time = attention_time(attention_shape(row->call), to.traits, p, true).total;
      sum += std::abs(time / row->seconds - 1);
      n += 1;
    }
    errors[i] = n > 0 ? 100 * sum / n : 0;
  }
  return errors;
}

std::string adapted_line(const AttentionGroup& to, const AttentionVector& copied,
                         std::size_t number) {
  Errors mean{}, worst{};
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    const Errors errors =
        errors_of(to, adapt_attention(copied, to.traits, drawn(to, number, draw)));
    for (std::size_t i = 0; i < errors.size(); ++i) {
      mean[i] += errors[i] / kDraws;
      worst[i] = std::max(worst[i], errors[i]);
    }
  }
  return formatted(
      "  %3zu kernels of the target, worst draw %5.1f %5.1f %5.1f   mean of 5 %5.1f %5.1f %5.1f\n",
      number, worst[0], worst[1], worst[2], mean[0], mean[1], mean[2]);
}

/// Fitted without the target GPU.
AttentionVector copied_from(const std::vector<AttentionGroup>& groups, const std::string& stack,
                            const AttentionAblation& form) {
  const std::string gpu = groups[position(groups, stack)].gpu;
  std::vector<AttentionGroup> source;
  std::ranges::copy_if(groups, std::back_inserter(source),
                       [&](const AttentionGroup& group) { return group.gpu == gpu; });
  return fit_attention(source, form, 2).parameters[position(source, stack)];
}

std::string transfer_lines(const std::vector<AttentionGroup>& groups, const Transfer& t) {
  const AttentionGroup& from = groups[position(groups, t.from)];
  const AttentionGroup& to = groups[position(groups, t.to)];
  const AttentionVector copied = copied_from(groups, t.from, {});
  const Errors errors = errors_of(to, copied);
  std::string text = formatted("%s %s -> %s %s\n  share of peak copied %59.1f %5.1f %5.1f\n",
                               from.gpu.substr(0, 4).c_str(), t.from, to.gpu.substr(0, 4).c_str(),
                               t.to, errors[0], errors[1], errors[2]);
  for (const std::size_t number : {5, 20, 100}) text += adapted_line(to, copied, number);
  return text;
}

/// The share of exponentials that do not overlap is not to be had from one GPU.
std::string exponentials_lines(const std::vector<AttentionGroup>& groups) {
  std::string text =
      "\nShare of the exponentials that do not overlap: loss at home, then share of peak copied, "
      "seq >= 128 in the\n"
      "order of the list above\n";
  for (const double share : {0.001, 0.25, 0.5, 0.9, 1.4}) {
    const AttentionAblation form{"", {{kExponentials, std::log(share)}}};
    text += formatted("%5.2f  loss %.4f ", share, fit_attention(groups, form, 2).mean_absolute);
    for (const Transfer& t : kTransfers)
      text += formatted(" %5.1f", errors_of(groups[position(groups, t.to)],
                                            copied_from(groups, t.from, form))[0]);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string attention_transfer(const std::vector<AttentionGroup>& groups) {
  for (const Transfer& t : kTransfers)
    if (position(groups, t.from) == groups.size() || position(groups, t.to) == groups.size())
      return "\nTransfer between GPUs: the measurements lack a stack\n";
  std::string text =
      "\nTo a GPU never measured (causal, head_dim 128, held-out calls of 50 us and longer): mean "
      "error [%] at seq >= 128,\n"
      ">= 512, >= 2048\n";
  for (const Transfer& t : kTransfers) text += transfer_lines(groups, t);
  return text + exponentials_lines(groups);
}

}  // namespace tessera

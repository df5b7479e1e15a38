#include "lab/fit/studies/attention_study.h"

#include <algorithm>
#include <cmath>

#include "hw/units/formatted.h"
#include "lab/fit/attention/attention_errors.h"
#include "lab/fit/attention/attention_transfer.h"
#include "predictor/attention/attention_predictor.h"

namespace tessera {
namespace {

constexpr double kLong = 50e-6;  // [s]: what targets speak of

double predicted(const AttentionMeasurement& row, const AttentionGpu& gpu,
                 const AttentionVector& x) {
  const auto p = AttentionParameters<double>::from_unconstrained(std::span<const double>(x));
  return attention_time(attention_shape(row.call), gpu, p, row.served).total;
}

std::string profile_table(const AttentionWeights& weights) {
  std::string text =
      "\nParameters. q, lng: steps of waves, longest block; chi: exponentials that do not overlap; "
      "eff: share of the\n"
      "tensor peak; t0 [us]; f: serving traffic per byte of Q; log slowdowns at head_dim 64, 192, "
      "256 and under a mask;\n"
      "gq: log speed-up of 8 query heads per key head; z: padding of head_dim\n";
  text += formatted("%-15s %-29s %-6s", "", "", "mask");
  for (const char* name :
       {"q", "lng", "chi", "eff", "t0", "f", "a64", "a192", "a256", "gq", "z", "mask", "sigma"})
    text += formatted(" %5s", name);
  text += "\n";
  for (const AttentionProfile& profile : weights.profiles) {
    const auto p = AttentionParameters<double>::from_unconstrained(
        std::span<const double>(profile.parameters));
    text += formatted("%-15s %-29s %-6s", profile.gpu.c_str(), profile.stack.c_str(),
                      !profile.full     ? "causal"
                      : !profile.causal ? "full"
                                        : "both");
    for (const double value :
         {p.quantisation, p.longest_block, p.exponentials, p.efficiency, p.launch * 1e6,
          profile.served ? p.conversion : 0.0, p.head64, p.head192, p.head256, p.grouped, p.padding,
          p.causal, profile.spread})
      text += formatted(" %5.2f", value);
    text += "\n";
  }
  const auto p = AttentionParameters<double>::from_unconstrained(
      std::span<const double>(weights.profiles.front().parameters));
  return text +
         formatted(
             "shared: norms %.2f and %.2f, traffic %.2f of compulsory, KV cache %.2f of K and V\n",
             p.compute_norm, p.memory_norm, p.memory_share, p.cache_write);
}

const char* waves_name(double waves) {
  return waves <= 1    ? "0-1"
         : waves <= 2  ? "1-2"
         : waves <= 4  ? "2-4"
         : waves <= 16 ? "4-16"
                       : ">16";
}

/// Profiles stand in the order of the groups.
void add_errors(const AttentionGroup& group, const AttentionVector& x, ErrorGroups& total,
                ErrorGroups& parts) {
  const std::string gpu = group.gpu.substr(0, 4);
  for (const AttentionMeasurement* row : group.rows) {
    const auto keys = row->call.seq_kv;
    if (!row->held_out || keys < 128) continue;
    const double time = predicted(*row, group.traits, x);
    const auto count = [&](ErrorGroups& errors, const std::string& name) {
      errors.add(gpu + " " + name, time, row->seconds);
    };
    if (row->seconds < kLong) {
      count(total, "seq >=  128, < 50 us");
      continue;
    }
    count(total, "seq >=  128");
    if (keys >= 512) count(total, "seq >=  512");
    if (keys >= 2048) count(total, "seq >= 2048");
    if (keys < 512) continue;
    const std::string mask = row->call.causal ? " causal" : " full";
    count(parts, "stack " + group.stack + mask);
    count(parts, formatted("head_dim %3d", static_cast<int>(row->call.head_dim)) + mask);
    count(parts, std::string("seq ") + (keys < 2048   ? "  512-2047"
                                        : keys < 8192 ? " 2048-8191"
                                                      : " 8192-    "));
    const double waves = attention_shape(row->call).blocks / group.traits.sms;
    count(parts, std::string("blocks per SM ") + waves_name(waves));
    const auto heads = row->call.heads / row->call.kv_heads;
    count(parts, std::string("heads per key head ") + (heads == 1  ? "1"
                                                       : heads < 8 ? "2-7"
                                                                   : ">= 8"));
  }
}

std::string held_out_tables(const std::vector<AttentionGroup>& groups, const AttentionFit& fit) {
  ErrorGroups total, parts;
  for (std::size_t g = 0; g < groups.size(); ++g)
    add_errors(groups[g], fit.parameters[g], total, parts);
  return "\nHeld-out shapes (a fifth, by hash), forward, error [%]; 50 us and longer where nothing "
         "else is said\n" +
         total.table() + "\nThe same by part, seq >= 512\n" + parts.table();
}

/// How many held-out calls lie within the 80 % interval that the predictor states.
std::string coverage_lines(const std::vector<AttentionGroup>& groups,
                           const AttentionWeights& weights, const GpuLookup& lookup) {
  std::string text =
      "\nHeld-out calls of 50 us and longer, seq >= 512, within the stated 80 % interval [%]\n";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto rows = judged_rows(groups[g], 512);
    if (rows.empty()) continue;
    const AttentionPredictor predictor(lookup(groups[g].gpu), weights, AttentionSetting::serving);
    double inside = 0;
    for (const AttentionMeasurement* row : rows) {
      const double half = log_half_width(predictor.predict(row->call).spread);
      const double time = predicted(*row, groups[g].traits, weights.profiles[g].parameters);
      inside += std::abs(std::log(time / row->seconds)) < half ? 1 : 0;
    }
    text += formatted("%-15s %-29s %5.1f\n", groups[g].gpu.c_str(), groups[g].stack.c_str(),
                      100 * inside / static_cast<double>(rows.size()));
  }
  return text;
}

std::string figure_tables(const AttentionTable& table, const GpuLookup& lookup,
                          const AttentionWeights& weights) {
  ErrorGroups errors;
  std::string rows =
      "\nFlashAttention-2, forward+backward, in training: measured and predicted [ms], error [%]\n";
  for (const AttentionMeasurement& row : table.rows) {
    if (!row.by_eye || !row.fused) continue;
    const AttentionPredictor predictor(lookup(row.gpu), weights);
    const double time = predictor.duration(row.call).value();
    const bool both = row.call.direction != AttentionDirection::forward;
    errors.add(row.gpu.substr(0, 4) + " " + row.stack + (both ? " forward+backward" : " forward"),
               time, row.seconds);
    if (both)
      rows += formatted("%-5s head_dim %3d %-6s seq %5d  %6.2f %6.2f %+6.1f\n",
                        row.gpu.substr(0, 4).c_str(), static_cast<int>(row.call.head_dim),
                        row.call.causal ? "causal" : "full", static_cast<int>(row.call.seq_q),
                        row.seconds * 1e3, time * 1e3, 100 * (time / row.seconds - 1));
  }
  const BackwardRatio& ratio = weights.backward;
  return formatted(
             "\nFigures of FlashAttention (labels read by eye, about 1 %%). Fitted: H100 forward; "
             "backward / forward = %.2f *\n"
             "(seq/2048)^-%.3f on H100 pairs. A100 forward+backward is fitted to nothing\n",
             ratio.at_2048, ratio.slope) +
         formatted(
             "FlashAttention of 2022 takes %.2f times as long at head size 64, %.2f at 128; at "
             "512 keys %.2f of that\n",
             weights.flash1(1e9, 64), weights.flash1(1e9, 128),
             weights.flash1(512, 64) / weights.flash1(1e9, 64)) +
         errors.table() + rows;
}

std::vector<AttentionAblation> ablations() {
  constexpr double kOff = -20;
  return {{"full form", {}},
          {"no exponentials", {{kExponentials, kOff}}},
          {"no steps of waves", {{kQuantisation, kOff}}},
          {"no longest block", {{kLongestBlock, kOff}}},
          {"no serving traffic", {{kConversion, kOff}, {kCacheWrite, kOff}}},
          {"no operand traffic", {{kMemoryShare, kOff}}},
          {"no padding of head_dim", {{kPadding, kOff}}},
          {"no head_dim effects", {{kHead64, 0}, {kHead192, 0}, {kHead256, 0}, {kPadding, kOff}}},
          {"no grouped heads", {{kGrouped, 0}}}};
}

double roofline(const AttentionMeasurement& row, const AttentionGpu& gpu) {
  return std::max(attention_flops(row.call) / gpu.flops, attention_bytes(row.call) / gpu.bandwidth);
}

/// The roofline times one constant per stack, the median of its fitted calls of 50 us and longer.
std::string roofline_line(const std::vector<AttentionGroup>& groups) {
  ErrorGroups errors;
  for (const AttentionGroup& group : groups) {
    std::vector<double> ratios;
    for (const AttentionMeasurement* row : group.rows)
      if (!row->held_out && row->seconds >= kLong && row->call.seq_kv >= 512)
        ratios.push_back(row->seconds / roofline(*row, group.traits));
    if (ratios.empty()) continue;
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    for (const std::int64_t least : {512, 2048})
      for (const AttentionMeasurement* row : judged_rows(group, least))
        errors.add(group.gpu.substr(0, 4) + std::to_string(least),
                   *middle * roofline(*row, group.traits), row->seconds);
  }
  return formatted("%-28s %9.2f %9.2f %9.2f %9.2f\n", "roofline times a constant",
                   errors.mean("A100512"), errors.mean("A1002048"), errors.mean("H100512"),
                   errors.mean("H1002048"));
}

std::string ablation_table(const std::vector<AttentionGroup>& groups) {
  std::string text =
      "\nAblations, each refitted: held-out mean error [%], A100 then H100\n" +
      formatted("%-28s %9s %9s %9s %9s\n", "", "seq>=512", "seq>=2048", "seq>=512", "seq>=2048");
  for (const AttentionAblation& ablation : ablations()) {
    const AttentionFit fit = fit_attention(groups, ablation, 2);
    ErrorGroups total, parts;
    for (std::size_t g = 0; g < groups.size(); ++g)
      add_errors(groups[g], fit.parameters[g], total, parts);
    text += formatted("%-28s %9.2f %9.2f %9.2f %9.2f\n", ablation.name,
                      total.mean("A100 seq >=  512"), total.mean("A100 seq >= 2048"),
                      total.mean("H100 seq >=  512"), total.mean("H100 seq >= 2048"));
  }
  return text + roofline_line(groups);
}

}  // namespace

std::string attention_study(const AttentionTable& table, const GpuLookup& lookup,
                            const AttentionWeights& weights) {
  const std::vector<AttentionGroup> groups = attention_groups(table, lookup);
  return formatted("Fused attention in 16 bits: %zu rows of %s, %lld fitted\n", table.rows.size(),
                   table.file.c_str(), static_cast<long long>(weights.data.rows)) +
         profile_table(weights) + held_out_tables(groups, fit_attention(groups)) +
         coverage_lines(groups, weights, lookup) + figure_tables(table, lookup, weights) +
         attention_transfer(groups) + ablation_table(groups);
}

}  // namespace tessera

#include <cmath>

#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/report/kernel_report.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

/// A split candidate with a smaller share is left out of the table.
constexpr double kShownShare = 0.005;

std::string entry(const char* label, const std::string& value) {
  return text_line("  %-24s", label).substr(0, 26) + value + "\n";
}

std::string shown(double value, const char* format) {
  return formatted(format, value);
}

std::string microseconds(double seconds) {
  return shown(seconds * 1e6, "%.2f us");
}

std::string percentage(double ratio) {
  return shown(ratio * 100, "%.1f %%");
}

std::string size_words(const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
  std::string words;
  for (const auto& [name, size] : sizes)
    words += (words.empty() ? "" : ", ") + name + " " + std::to_string(size);
  return words;
}

std::string title(const KernelReport& report) {
  const KernelStory& story = report.story;
  std::string text = report.op + ": " + size_words(report.sizes);
  if (story.attention) {
    const AttentionCall& call = story.kernel.attention;
    text += ", " + std::string(name_of(call.implementation)) + " " +
            std::string(direction_words(call.direction)) + (call.causal ? ", causal" : ", full");
  }
  if (story.has_layout()) text += ", " + std::string(label_of(story.kernel.layout));
  text += ", " + std::string(name_of(story.kernel.precision)) + " on " + report.gpu.id + "\n";
  text +=
      std::string(name_of(story.basis.mode)) + ", " + std::string(name_of(story.effect.provenance));
  return text + (story.basis.effect.empty() ? "" : ": " + story.basis.effect) + "\n";
}

std::string slowdown_words(const GpuEffect& effect) {
  std::string text = "linear x" + shown(std::exp(effect.gemm_slowdown), "%.3f") + ", bmm x" +
                     shown(std::exp(effect.batched_slowdown), "%.3f");
  if (effect.convolution_slowdown)
    text += ", conv2d x" + shown(std::exp(*effect.convolution_slowdown), "%.3f");
  return text + " of the shared model's time";
}

std::string gpu_lines(const KernelStory& story) {
  const GpuTraits& gpu = story.traits;
  const GpuEffect& effect = story.effect;
  const auto& loss = effect.bandwidth_slowdown;
  std::string text = "\nGPU\n";
  text += entry("fp32 peak", to_short_text(FlopsPerSecond(gpu.flops)));
  text += entry("memory bandwidth", to_short_text(BytesPerSecond(gpu.bandwidth)));
  text += entry("L2", to_short_text(Bytes(static_cast<std::int64_t>(gpu.l2))));
  text += entry("SMs", shown(gpu.sms, "%.0f") + ", each with " + std::to_string(gpu.lanes_per_sm) +
                           " fp32 lanes");
  if (story.on_tensor_cores)
    text += entry("tensor peak", to_short_text(FlopsPerSecond(story.peak_flops)) + ", dense");
  text += entry("power limit", gpu.tdp > 0 ? to_short_text(Watts(gpu.tdp)) : "not published");
  if (story.on_tensor_cores) return text;
  text += entry("sustained rate",
                effect.sustained_flops > 0
                    ? to_short_text(FlopsPerSecond(effect.sustained_flops)) + " of products"
                    : "not limited by power");
  text += entry("slowdown of products", slowdown_words(effect));
  return text +
         entry("bandwidth reached", "elementwise " + percentage(std::exp(-loss[0])) + ", softmax " +
                                        percentage(std::exp(-loss[1])) + ", layer_norm " +
                                        percentage(std::exp(-loss[2])) + " of peak");
}

std::string candidate_line(const TileCandidate& c) {
  const std::string tile = std::to_string(c.tile.m) + "x" + std::to_string(c.tile.n);
  return text_line("  %-9s %5d %8.0f %8.2f %8.2f %9.0f %6.1f %6.3f %7.1f", tile.c_str(), c.split,
                   c.blocks, c.waves, c.charged_waves, c.blocks_per_sm, c.sm_utilization * 100,
                   c.relative, c.share * 100);
}

/// `order` says what the layout slowdown stands for: the memory order, or a convolution's
/// algorithm.
std::string product_lines(const ProductStory& product, const char* order, double sms) {
  const GemmShape& s = product.shape;
  const TileCandidate& likely = product.candidates.front();
  std::string text =
      "\n" + text_line("tiles of the product, %.0f x (%.0f x %.0f x %.0f)", s.batch, s.m, s.n, s.k);
  text += text_line("  %-9s %5s %8s %8s %8s %9s %6s %6s %7s", "tile", "split", "blocks", "waves",
                    "charged", "blocks/SM", "used %", "time x", "share %");
  std::size_t hidden = 0;
  for (const TileCandidate& c : product.candidates) {
    if (c.split == 1 || c.share >= kShownShare)
      text += candidate_line(c);
    else
      hidden += 1;
  }
  if (hidden > 0)
    text += text_line("  and %zu splits with less than %.1f %%", hidden, kShownShare * 100);
  text += entry(
      "likely tile",
      std::to_string(likely.tile.m) + "x" + std::to_string(likely.tile.n) +
          (likely.split > 1 ? " in " + std::to_string(likely.split) + " slices of the contraction"
                            : "") +
          ": " + shown(likely.blocks, "%.0f") + " blocks on " + shown(sms, "%.0f") + " SMs");
  text += entry("soft minimum", microseconds(product.tiles));
  text += entry("slowdowns", "rows x" + shown(product.row_slowdown, "%.3f") + ", " + order + " x" +
                                 shown(product.layout_slowdown, "%.3f") + ", GPU x" +
                                 shown(product.gpu_slowdown, "%.3f") + " = " +
                                 microseconds(product.unlimited()));
  return text + entry("at the power limit",
                      product.at_power_limit ? microseconds(*product.at_power_limit) : "no limit");
}

std::string algorithm_lines(const ConvolutionStory& convolution) {
  std::string text =
      "\n" + text_line("%-18s %11s %11s %11s %11s %6s %7s", "algorithm", "compute us", "memory us",
                       "other us", "total us", "time x", "share %");
  for (const AlgorithmCandidate& c : convolution.algorithms)
    text += text_line("  %-16s %11.2f %11.2f %11.2f %11.2f %6.3f %7.1f",
                      std::string(c.name).c_str(), c.terms.compute * 1e6, c.terms.memory * 1e6,
                      c.terms.other * 1e6, c.seconds * 1e6, c.relative, c.share * 100);
  return text;
}

std::string attention_lines(const AttentionParts& parts) {
  std::string text = "\nattention, forward\n";
  text += entry("blocks", shown(parts.shape.blocks, "%.0f") + " of " +
                              shown(parts.shape.block_queries, "%.0f") + " queries, " +
                              shown(parts.forward.waves, "%.2f") + " per SM");
  text += entry("keys per block", shown(parts.shape.keys, "%.0f") + " on average, " +
                                      shown(parts.shape.longest, "%.0f") + " in the longest");
  text += entry("products run at", percentage(parts.parameters.efficiency) +
                                       " of the tensor peak, before head size and mask");
  text += entry("exponentials", percentage(parts.parameters.exponentials) + " do not overlap");
  text += entry("compute, memory",
                microseconds(parts.forward.compute) + ", " + microseconds(parts.forward.memory));
  return text + entry("this call", "x" + shown(parts.factor, "%.2f") + " the forward time");
}

std::string note_lines(const KernelStory& story) {
  std::string text;
  for (const std::string& note : story.notes) text += "  " + note + "\n";
  return text.empty() ? "" : "\nnot measured as such\n" + text;
}

std::string traffic_lines(const TrafficStory& traffic) {
  std::string text = "\nmemory traffic\n";
  text += entry("compulsory", to_short_text(Bytes(static_cast<std::int64_t>(traffic.bytes))) +
                                  ", " + shown(traffic.l2_ratio, "%.3g") + " x the L2");
  text += entry("charged",
                to_short_text(Bytes(static_cast<std::int64_t>(traffic.charged_bytes))) +
                    (traffic.kind_factor == 1 ? "" : ", x" + shown(traffic.kind_factor, "%.2f")));
  text +=
      entry("L2", percentage(1 - traffic.l2_miss) + " hits, " + percentage(traffic.l2_miss) +
                      " misses; a hit is " + shown(traffic.hit_speedup, "%.2f") + " times as fast");
  text += entry("reached by misses", percentage(traffic.reached_share) + " of peak bandwidth");
  if (traffic.issue_seconds > 0)
    text += entry("instructions of the SMs", "at least " + microseconds(traffic.issue_seconds));
  return text + entry("achieved", percentage(traffic.achieved_share) +
                                      " of peak bandwidth, by the whole duration");
}

std::string extrapolation_words(const Extrapolation& extrapolated) {
  if (!extrapolated) return "no: inside the training data";
  return std::string(extrapolated.input) + " is " + shown(extrapolated.factor, "%.2f") +
         " times the training data's";
}

std::string time_lines(const KernelStory& story) {
  const KernelPrediction& p = story.prediction;
  std::string text = "\ntime\n";
  text += entry("limited by", std::string(name_of(story.limit)));
  text += entry("compute time", microseconds(p.compute_time.value()));
  text += entry("memory time", microseconds(p.memory_time.value()));
  text += entry("joined", microseconds(story.joined.value()) + ", roofline " +
                              microseconds(story.bound.value()));
  text += entry("duration", microseconds(p.duration.value()) + " in a queued stream, of which " +
                                microseconds(story.queue_floor.value()) + " to start and drain");
  text += entry("utilization", percentage(p.utilization) + " of the roofline");
  text += entry("80 % interval", microseconds(story.interval.low.value()) + " to " +
                                     microseconds(story.interval.high.value()));
  text += entry("  standard deviations", percentage(p.spread.gpu) + " common to the GPU, " +
                                             percentage(p.spread.shape) + " of the shape");
  text += entry("extrapolated", extrapolation_words(p.extrapolated));
  if (story.warm_duration)
    text += entry("operands in the L2", microseconds(story.warm_duration->value()) +
                                            ": repeated alone; a step finds cold caches");
  return text + entry("isolated call", microseconds(story.isolated().value()) + ", launch gap " +
                                           microseconds(story.launch_gap.value()));
}

std::string nearest_lines(const KernelReport& report) {
  if (report.nearest.empty()) return "\nnearest measured calls: " + report.measurements + "\n";
  std::string text = "\nnearest measured calls in " + report.measurements + "\n";
  text += text_line("  %-15s %-5s %-8s %7s %11s %12s %7s", "GPU", "split", "timing", "octaves",
                    "measured us", "predicted us", "error %");
  for (const NearMeasurement& near : report.nearest)
    text += text_line(
        "  %-15s %-5s %-8s %7.2f %11.2f %12.2f %+7.1f\n    of %s", near.gpu.c_str(),
        std::string(split_of(near.row)).c_str(), std::string(name_of(near.row.timing)).c_str(),
        near.octaves, near.measured.value() * 1e6, near.predicted.value() * 1e6,
        100 * (near.predicted / near.measured - 1), size_words(sizes_of(near.row)).c_str());
  return text;
}

}  // namespace

std::string kernel_table(const KernelReport& report) {
  const KernelStory& story = report.story;
  std::string text = title(report) + gpu_lines(story);
  if (story.convolution) text += algorithm_lines(*story.convolution);
  if (story.product)
    text +=
        product_lines(*story.product, story.convolution ? "algorithm" : "order", story.traits.sms);
  if (story.attention) text += attention_lines(story.attention->parts);
  if (story.traffic) text += traffic_lines(*story.traffic);
  return text + time_lines(story) + note_lines(story) + nearest_lines(report);
}

}  // namespace tessera

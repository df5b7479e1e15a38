#include "sim/report/text/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "hw/units/formatted.h"
#include "hw/units/text.h"
#include "sim/report/analysis/rank_list.h"
#include "sim/report/definitions.h"
#include "sim/report/text/fitted_lines.h"
#include "sim/report/text/percent_shares.h"
#include "sim/report/text/table_cells.h"
#include "sim/report/text/table_head.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

constexpr std::size_t kLabelWidth = 24;
constexpr std::size_t kKernelKindRows = 4;
constexpr std::size_t kSegmentRows = 3;
constexpr int kBarWidth = 30;

std::string time_row(std::string_view label, Seconds time, int tenths) {
  return "  " + padded(label, kLabelWidth) + right(milliseconds(time), 12) +
         right(fixed(tenths / 10.0, 1), 8);
}

/// " [3]" where notes follow.
std::string reference(int number, const TextStyle& style) {
  return style.notes ? " [" + std::to_string(number) + "]" : "";
}

std::string marked(std::string_view mark, const std::string& text, bool colour) {
  return colour ? std::string(mark) + text + std::string(kMarkEnd) : text;
}

std::string summary_row(std::string_view label, const std::string& value) {
  return padded(label, kLabelWidth + 2) + value + "\n";
}

std::string utilization_text(const StepReport& report) {
  const std::string precision(name_of(report.precision));
  if (!report.mfu || !report.hfu) return "n/a: no published " + precision + " peak";
  return percent(*report.mfu) + ", " + percent(*report.hfu) + " of " +
         significant(report.peak_per_gpu.value() / 1e12) + " TFLOP/s (dense " + precision +
         ") per GPU";
}

std::string throughput_text(const StepReport& report) {
  const std::string samples = significant(report.samples_per_s) + " samples/s";
  if (report.tokens_per_s == 0) return samples;  // images are no sequences
  return significant(report.tokens_per_s) + " tokens/s, " +
         significant(report.tokens_per_s_per_gpu) + " tokens/s per GPU, " + samples;
}

/// Predictions outside the training range are less certain, so the table says where they matter.
std::string extrapolation_row(const StepReport& report) {
  if (report.extrapolated.empty()) return "";
  const auto entry = [](const ExtrapolatedKernels& kernels) {
    return kernels.input + " of " + spaced(label_of(kernels.kind)) + " up to " +
           fixed(kernels.factor, 1) + "x";
  };
  std::string farthest = entry(report.extrapolated.front());
  if (report.extrapolated.size() > 1) farthest += ", " + entry(report.extrapolated[1]);
  if (report.extrapolated.size() > 2)
    farthest += ", and " + std::to_string(report.extrapolated.size() - 2) + " more";
  return summary_row("extrapolated", percent(report.extrapolated_share()) +
                                         " of the kernel time, in kernels larger than those "
                                         "trained on:") +
         summary_row("", farthest);
}

std::string step_time_text(const StepReport& report, const TextStyle& style) {
  const std::string time =
      marked(kMarkStrong, milliseconds(report.step_time) + " ms", style.colour);
  if (!report.interval) return time;
  return time + ", 80 % interval " + milliseconds(report.interval->time.low) + " to " +
         milliseconds(report.interval->time.high) + " ms" + reference(5, style);
}

/// Nothing where its peers hardly wait for anyone.
std::string straggler_row(const StepReport& report) {
  constexpr double kWorthARow = 1e-3;
  if (!report.straggler || report.straggler->longest < report.step_time * kWorthARow) return "";
  return summary_row("straggler", "GPU " + std::to_string(report.straggler->rank) +
                                      ": a peer waits " + milliseconds(report.straggler->longest) +
                                      " ms for it, all together " +
                                      milliseconds(report.straggler->waited) + " ms");
}

/// Nothing where no kernel waits for a copy to or from host memory.
std::string copies_row(const StepReport& report, const TextStyle& style) {
  const Seconds copies = report.breakdown.exposed_copies();
  if (copies <= Seconds()) return "";
  return summary_row("exposed copies" + reference(6, style),
                     milliseconds(copies) + " ms, " + percent(copies / report.step_time));
}

/// "5.12 kW, at most 5.6; rack 20.5 kW, at most 22.4".
std::string node_power_row(const StepEnergy& energy) {
  const auto kilowatts = [](Watts mean, Watts peak) {
    return significant(mean.value() / 1e3) + " kW, at most " + significant(peak.value() / 1e3);
  };
  std::string text = kilowatts(energy.node_mean, energy.node_peak);
  if (energy.rack_mean.value() > 0)
    text += "; rack " + kilowatts(energy.rack_mean, energy.rack_peak);
  const bool is_guess = energy.hosts_j > 0 && !energy.host_is_confirmed;
  return summary_row("power of a node", text) +
         (is_guess ? summary_row("", "its host_power is estimated, not confirmed") : "");
}

/// "1.24 kJ, 412 W per GPU".
std::string energy_row(const StepReport& report) {
  if (!report.energy) return "";
  const StepEnergy& energy = *report.energy;
  const bool large = energy.facility_j >= 1e4;
  const bool is_described = energy.hosts_j > 0 || energy.rack_mean.value() > 0;
  std::string text = significant(energy.facility_j / (large ? 1e3 : 1)) +
                     (large ? " kJ, " : " J, ") + fixed(energy.mean_gpu.value(), 0) + " W per GPU";
  if (energy.clock < 1) text += ", products at " + percent(energy.clock) + " of the clock";
  if (energy.hosts_j <= 0) text += " (GPUs alone)";
  return summary_row("energy of the step", text) + (is_described ? node_power_row(energy) : "");
}

/// `known`: its layout and model are, not only what ran when.
std::string summary_rows(const StepReport& report, bool known, const TextStyle& style) {
  const Seconds exposed = report.breakdown.exposed_communication();
  const double share = report.step_time.value() > 0 ? exposed / report.step_time : 0.0;
  const std::string time = summary_row("step time", step_time_text(report, style));
  const std::string waits = summary_row("exposed comm." + reference(3, style),
                                        milliseconds(exposed) + " ms, " + percent(share));
  if (!known) return time + waits + copies_row(report, style) + straggler_row(report);
  return time + summary_row("throughput", throughput_text(report)) +
         summary_row("MFU, HFU" + reference(1, style), utilization_text(report)) +
         summary_row("bubble fraction" + reference(2, style), percent(report.bubble_fraction)) +
         waits + copies_row(report, style) + energy_row(report) + straggler_row(report) +
         (style.notes ? extrapolation_row(report) : "");
}

/// A bar in the colour of the class, as long as its share of the longest one.
std::string bar_of(TimeCategory category, int share, int longest, const TextStyle& style) {
  if (!style.colour || longest <= 0) return "";
  const double part = static_cast<double>(share) / longest;
  return "  " + mark_of(category) + text_bar(part, kBarWidth) + std::string(kMarkEnd);
}

std::string breakdown_rows(const StepReport& report, const TextStyle& style) {
  std::vector<double> parts;
  for (const TimeCategory category : time_categories()) {
    parts.push_back(report.breakdown[category].value());
  }
  const std::vector<int> tenths = tenths_of_percent(parts);
  const int longest = *std::ranges::max_element(tenths);
  std::string rows = "\n" + padded("time of a GPU" + reference(4, style), kLabelWidth + 2) +
                     right("ms", 12) + right("%", 8) + "\n";
  for (const TimeCategory category : time_categories()) {
    const Seconds time = report.breakdown[category];
    const int share = tenths[static_cast<std::size_t>(category)];
    if (share == 0 && milliseconds(time) == "0.000") continue;
    rows += time_row(spaced(label_of(category)), time, share) +
            bar_of(category, share, longest, style) + "\n";
  }
  const int sum = std::accumulate(tenths.begin(), tenths.end(), 0);
  return rows + time_row("total", report.breakdown.total(), sum) + "\n";
}

int step_share(Seconds time, const StepReport& report) {
  return report.step_time.value() > 0
             ? static_cast<int>(std::lround(time / report.step_time * 1000))
             : 0;
}

std::string kernel_kind_rows(const StepReport& report, const TextStyle& style) {
  if (report.kernel_kinds.empty()) return "";
  std::string rows = "\nlongest kernel kinds";
  rows += (report.kernels_overlap() ? reference(7, style) : "") + "\n";
  for (std::size_t i = 0; i < std::min(kKernelKindRows, report.kernel_kinds.size()); ++i) {
    const KernelKindTime& entry = report.kernel_kinds[i];
    rows += time_row(spaced(label_of(entry.kind)), entry.time, step_share(entry.time, report)) +
            right(count(entry.launches), 10) + " launches\n";
  }
  return rows;
}

std::string segment_rows(const StepReport& report) {
  std::string rows = "\nlongest segments\n";
  for (std::size_t i = 0; i < std::min(kSegmentRows, report.segments.size()); ++i) {
    const SegmentTime& entry = report.segments[i];
    rows += time_row(entry.name, entry.time, step_share(entry.time, report)) +
            right(count(entry.runs), 10) + " runs\n";
  }
  return rows;
}

std::string pressure_row(const MemoryReport& memory) {
  std::string text;
  const auto add = [&](const std::string& what) {
    text += summary_row(text.empty() ? "memory pressure" : "", what);
  };
  if (memory.pressure_copies > 0)
    add(std::to_string(memory.pressure_copies) + " copies beside the program, " +
        gibibytes(memory.pressure_bytes));
  if (memory.pressure_reruns > 0)
    add(std::to_string(memory.pressure_reruns) + " segments recomputed, " +
        to_short_text(memory.pressure_rerun_time));
  return text;
}

std::string memory_rows(const MemoryReport& memory, const TextStyle& style) {
  const auto fullest = std::max_element(
      memory.per_rank.begin(), memory.per_rank.end(),
      [](const RankMemory& a, const RankMemory& b) { return a.device < b.device; });
  if (fullest == memory.per_rank.end()) return "";
  const std::string verdict = fullest->fits
                                  ? "fits, " + gibibytes(fullest->headroom) + " free"
                                  : "DOES NOT FIT, " + gibibytes(-fullest->headroom) + " too much";
  return "\n" +
         summary_row("memory",
                     gibibytes(memory.device) + " of " + gibibytes(memory.capacity) + ": " +
                         marked(fullest->fits ? kMarkGood : kMarkBad, verdict, style.colour)) +
         summary_row("", "on GPU " + std::to_string(fullest->rank) + ": reserved " +
                             gibibytes(fullest->reserved) + ", CUDA context " +
                             gibibytes(memory.context) + ", NCCL " +
                             gibibytes(memory.communicators)) +
         summary_row("peak memory", gibibytes(memory.peak) + " allocated, of which " +
                                        gibibytes(fullest->static_bytes) + " static") +
         pressure_row(memory);
}

/// Which GPUs were simulated, where that were not all.
std::string folding_rows(const StepReport& report) {
  constexpr std::size_t kMostClasses = 3;
  std::string rows;
  const std::vector<RankClass> classes = rank_classes(report.folding);
  if (!classes.empty()) {
    rows += summary_row("simulated", std::to_string(classes.size()) + " of " +
                                         std::to_string(report.gpus()) +
                                         " GPUs; the others do the same");
  }
  for (std::size_t i = 0; i < std::min(kMostClasses, classes.size()); ++i) {
    rows += summary_row("", "GPU " + std::to_string(classes[i].rank) + " stands for " +
                                rank_list(classes[i].ranks));
  }
  if (classes.size() > kMostClasses)
    rows += summary_row("", "and " + std::to_string(classes.size() - kMostClasses) + " more");
  for (const FoldRefusal& refusal : report.folding.refused) {
    rows += summary_row("fold of " + refusal.fold, "not complete: " + refusal.reason);
  }
  return rows.empty() ? rows : "\n" + rows;
}

std::string footnote(int number, std::string_view text) {
  return wrapped("[" + std::to_string(number) + "]", text);
}

/// How utilization can be above 100 %, where it can: `head` stands before each sentence.
std::string utilization_caveats(const StepReport& report, const std::string& head) {
  constexpr double kWorthALine = 5e-4;
  const auto share = [&](double of, std::string_view text) {
    return of < kWorthALine ? "" : wrapped(head, percent(of) + " " + std::string(text));
  };
  return share(report.counted.winograd, definitions::kWinograd) +
         share(report.counted.other_precisions, definitions::kOtherPrecisions);
}

std::string footnotes(const StepReport& report) {
  const auto where = [](bool applies, int number, std::string_view text) {
    return applies ? footnote(number, text) : "";
  };
  return "\n" + footnote(1, definitions::kMfu) + footnote(1, definitions::kHfu) +
         utilization_caveats(report, "[1]") + footnote(2, definitions::kBubbleFraction) +
         footnote(3, definitions::kExposedCommunication) + footnote(4, definitions::kBreakdown) +
         where(report.interval.has_value(), 5, definitions::kInterval) +
         where(report.breakdown.exposed_copies() > Seconds(), 6, definitions::kExposedCopies) +
         where(report.kernels_overlap(), 7, definitions::kKernelKinds);
}

}  // namespace

std::string table_text(const StepReport& report, const Provenance& provenance,
                       const TextStyle& style) {
  const bool known = !is_replayed(provenance);
  return fitted(header_line(report, provenance, style) + summary_rows(report, known, style) +
                breakdown_rows(report, style) + kernel_kind_rows(report, style) +
                segment_rows(report) + (known ? memory_rows(report.memory, style) : "") +
                folding_rows(report)) +
         (style.notes ? footnotes(report)
                      : "\n" + utilization_caveats(report, "MFU:") +
                            "what the terms mean, and what the prediction rests on: --notes\n");
}

}  // namespace tessera

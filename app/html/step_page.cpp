#include "app/html/step_page.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "app/html/flame_data.h"
#include "app/html/headline.h"
#include "app/html/link_figures.h"
#include "app/html/page.h"
#include "app/html/palette_data.h"
#include "app/html/provenance_data.h"
#include "app/html/step_figures.h"
#include "app/html/timeline_data.h"
#include "hw/units/formatted.h"
#include "sim/report/definitions.h"
#include "sim/report/text/step_story.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::size_t kRankBars = 64;

/// Four significant digits.
std::string rounded(double value) {
  return formatted("%.4g", value);
}

PageJson percent(const std::optional<double>& ratio) {
  return ratio ? PageJson(100 * *ratio) : PageJson();
}

PageJson step_time_entry(const StepReport& report) {
  return page_entry("step time [ms]", report.step_time.value() * 1e3,
                    "from the start of the step to the end of the last op of any GPU");
}

PageJson exposed_entry(const StepReport& report) {
  return page_entry("exposed communication [ms]",
                    report.breakdown.exposed_communication().value() * 1e3,
                    definitions::kExposedCommunication);
}

/// Of a step that comes from traces: nothing of model, memory and FLOPs.
PageJson known_of_replay(const StepReport& report) {
  return PageJson::array({step_time_entry(report), exposed_entry(report)});
}

PageJson summary_of(const StepReport& report) {
  PageJson summary = PageJson::array({step_time_entry(report)});
  if (report.interval) {
    summary.push_back(page_entry("80 % interval [ms]",
                                 rounded(report.interval->time.low.value() * 1e3) + " to " +
                                     rounded(report.interval->time.high.value() * 1e3),
                                 definitions::kInterval));
  }
  summary.push_back(page_entry("tokens/s", report.tokens_per_s));
  summary.push_back(page_entry("tokens/s per GPU", report.tokens_per_s_per_gpu));
  summary.push_back(page_entry("MFU [%]", percent(report.mfu), definitions::kMfu));
  summary.push_back(page_entry("HFU [%]", percent(report.hfu), definitions::kHfu));
  summary.push_back(
      page_entry("bubble [%]", 100 * report.bubble_fraction, definitions::kBubbleFraction));
  summary.push_back(exposed_entry(report));
  summary.push_back(page_entry("exposed copies [ms]",
                               report.breakdown.exposed_copies().value() * 1e3,
                               definitions::kExposedCopies));
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  summary.push_back(page_entry("peak memory [GiB]",
                               static_cast<double>(report.memory.peak.value()) / kGibibyte,
                               definitions::kPeakMemory));
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.value()) / kGibibyte; };
  const MemoryReport& memory = report.memory;
  summary.push_back(page_entry("reserved by the allocator [GiB]", gib(memory.reserved)));
  summary.push_back(page_entry("CUDA context [GiB]", gib(memory.context)));
  summary.push_back(page_entry("NCCL [GiB]", gib(memory.communicators)));
  summary.push_back(page_entry("needed of a GPU [GiB]", gib(memory.device), definitions::kFits));
  summary.push_back(page_entry("memory of a GPU [GiB]", gib(memory.capacity),
                               memory.fits ? "the step fits" : "the step does not fit"));
  return summary;
}

PageJson ranks_of(const StepReport& report) {
  PageJson rows = PageJson::array();
  const std::vector<RankMemory>& simulated = report.memory.per_rank;  // in the same order
  for (std::size_t rank = 0; rank < std::min(kRankBars, report.by_rank.size()); ++rank) {
    PageJson shares = PageJson::array();
    for (const TimeCategory category : time_categories()) {
      const Seconds whole = report.step_time;
      shares.push_back(whole.value() > 0 ? report.by_rank[rank][category] / whole : 0.0);
    }
    const int others = simulated[rank].stands_for - 1;
    rows.push_back({{"name", "GPU " + std::to_string(simulated[rank].rank) +
                                 (others > 0 ? " and " + std::to_string(others) + " like it" : "")},
                    {"shares", std::move(shares)}});
  }
  PageJson ranks = palette_data("classes");
  ranks["rows"] = std::move(rows);
  return ranks;
}

/// Those that help most first.
PageJson effects_of(std::vector<Sensitivity> sensitivities) {
  std::ranges::stable_sort(sensitivities, std::ranges::greater(), &Sensitivity::elasticity);
  PageJson effects = PageJson::array();
  for (const Sensitivity& one : sensitivities)
    effects.push_back({{"name", meaning_of(one.resource)}, {"elasticity", one.elasticity}});
  return effects;
}

double share_of(Seconds part, Seconds whole) {
  return whole.value() > 0 ? 100 * (part / whole) : 0.0;
}

std::string kinds_note(const StepReport& report) {
  const std::string overlap(definitions::kKernelKinds);
  return "mean over GPUs" + (report.kernels_overlap() ? "; " + overlap : "");
}

PageJson tables_of(const StepReport& report, const StepStory& story) {
  PageJson path{{"title", "Critical path"},
                {"columns", {"class", "what", "ms", "% of the step", "times"}},
                {"rows", PageJson::array()},
                {"note",
                 "chain of causes from the start of the step to its end: shortening "
                 "anything else does not shorten the step"}};
  for (const PathOp& op : story.path_ops)
    path["rows"].push_back({label_of(op.time_class), op.name, op.time.value() * 1e3,
                            share_of(op.time, report.step_time), op.count});
  PageJson kinds{{"title", "Kernels by kind"},
                 {"columns", {"kind", "ms", "% of the step", "launches"}},
                 {"rows", PageJson::array()},
                 {"note", kinds_note(report)}};
  for (const KernelKindTime& kind : report.kernel_kinds)
    kinds["rows"].push_back({label_of(kind.kind), kind.time.value() * 1e3,
                             share_of(kind.time, report.step_time), kind.launches});
  PageJson segments{{"title", "Segments"},
                    {"columns", {"segment", "phase", "ms", "% of the step", "runs"}},
                    {"rows", PageJson::array()},
                    {"note", "runs of kernels that nothing interrupts; mean over GPUs"}};
  for (const SegmentTime& segment : report.segments)
    segments["rows"].push_back({segment.name, label_of(segment.phase), segment.time.value() * 1e3,
                                share_of(segment.time, report.step_time), segment.runs});
  PageJson tables = PageJson::array();
  for (PageJson* table : {&path, &kinds, &segments}) tables.push_back(std::move(*table));
  return tables;
}

}  // namespace

std::string step_page(const StepReport& report, const Provenance& provenance,
                      const TimedProgram& timed, const Timeline& timeline,
                      const StepPageLimits& limits, const std::vector<Sensitivity>& sensitivities) {
  const StepStory story = tell_step(timed, timeline);
  PageJson page{{"title", provenance.scenario}, {"subtitle", subtitle_of(report, provenance)}};
  page["headline"] = headline_of(report, provenance);
  const bool replayed = provenance.mode == "replayed";  // traces know neither kernels nor memory
  page["summary"] = replayed ? known_of_replay(report) : summary_of(report);
  if (!sensitivities.empty()) page["effects"] = effects_of(sensitivities);
  page["ranks"] = ranks_of(report);
  if (!replayed) page["flame"] = flame_data(TimelineIndex(timed, timeline), timed);
  page["timeline"] = timeline_data(timed, timeline, story.path, limits);
  if (!replayed) page["memory"] = memory_data(report, timed, timeline, limits);
  page["links"] = link_figures(TimelineIndex(timed, timeline), timed);
  page["roofline"] = kernel_roofline(report, timed);
  page["tables"] = tables_of(report, story);
  page["provenance"] = provenance_data(report, provenance);
  return html_page(page);
}

PageJson live_step_document(const StepReport& report, const Provenance& provenance,
                            const TimedProgram& timed, const Timeline& timeline) {
  constexpr StepPageLimits kLimits{.slices = 20'000,
                                   .memory_ranks = 4,
                                   .category_ranks = 4,
                                   .category_samples = 400,
                                   .memory_samples = 800};
  return {{"title", provenance.scenario},
          {"subtitle", subtitle_of(report, provenance)},
          {"headline", headline_of(report, provenance)},
          {"ranks", ranks_of(report)},
          {"timeline", timeline_data(timed, timeline, {}, kLimits)},
          {"memory", memory_data(report, timed, timeline, kLimits)}};
}

}  // namespace tessera

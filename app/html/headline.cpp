#include "app/html/headline.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "hw/units/formatted.h"
#include "sim/report/definitions.h"

namespace tessera {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson figure(const char* name, double value, const char* unit, std::string_view definition) {
  return {{"name", name}, {"value", value}, {"unit", unit}, {"definition", definition}};
}

/// Of the step; a ratio in [0, 1], as sure as the ratio of the parts.
PageJson share(const char* name, double ratio, std::string_view definition) {
  PageJson json = figure(name, 100 * ratio, "%", definition);
  json["share"] = true;
  return json;
}

PageJson time_of(const StepReport& report) {
  PageJson time{{"seconds", report.step_time.value()}};
  if (report.interval) {
    time["low_s"] = report.interval->time.low.value();
    time["high_s"] = report.interval->time.high.value();
  }
  time["definition"] = "from the start of the step to the end of the last op of any GPU; 80 %: " +
                       std::string(definitions::kInterval);
  return time;
}

PageJson figures_of(const StepReport& report, bool known) {
  PageJson figures = PageJson::array();
  const double exposed = report.breakdown.exposed_communication() / report.step_time;
  const PageJson waits =
      share("exposed communication", exposed, definitions::kExposedCommunication);
  if (!known) return PageJson::array({waits});
  figures.push_back(figure("throughput", report.tokens_per_s, "tokens/s",
                           "tokens of all GPUs over the step time"));
  figures.back()["detail_value"] = report.tokens_per_s_per_gpu;
  figures.back()["detail"] = "per GPU";
  if (report.mfu) {
    figures.push_back(figure("MFU", 100 * *report.mfu, "%", definitions::kMfu));
    if (report.hfu && *report.hfu != *report.mfu) {
      figures.back()["detail_value"] = 100 * *report.hfu;
      figures.back()["detail"] = "% with what is computed again (HFU)";
    }
  }
  figures.push_back(waits);
  if (report.layout.pipeline > 1)
    figures.push_back(
        share("pipeline bubble", report.bubble_fraction, definitions::kBubbleFraction));
  if (report.energy) {
    const bool large = report.energy->facility_j >= 1e4;
    figures.push_back(figure("energy of the step", report.energy->facility_j / (large ? 1e3 : 1),
                             large ? "kJ" : "J", definitions::kEnergy));
    figures.back()["detail_value"] = report.energy->mean_gpu.value();
    figures.back()["detail"] = "W per GPU";
  }
  return figures;
}

PageJson part(const char* name, Bytes bytes) {
  return {{"name", name}, {"bytes", std::max(Bytes(0), bytes).value()}};
}

/// Of the fullest GPU: the parts add up to what is needed.
PageJson memory_of(const MemoryReport& memory) {
  const auto fullest = std::ranges::max_element(memory.per_rank, {}, &RankMemory::device);
  const RankMemory rank = fullest == memory.per_rank.end() ? RankMemory{} : *fullest;
  const Bytes around = memory.context + memory.communicators;
  PageJson parts = PageJson::array();
  parts.push_back(part("held all the time", rank.static_bytes));
  parts.push_back(part("activations and buffers", rank.peak - rank.static_bytes));
  parts.push_back(part("allocator", rank.device - around - rank.peak));
  parts.push_back(part("CUDA context", memory.context));
  parts.push_back(part("NCCL", memory.communicators));
  std::erase_if(parts.get_ref<PageJson::array_t&>(),
                [](const PageJson& one) { return one["bytes"] == 0; });
  return {{"needed", memory.device.value()},
          {"capacity", memory.capacity.value()},
          {"fits", memory.fits},
          {"parts", std::move(parts)},
          {"definition", definitions::kFits}};
}

PageJson shares_of(const StepReport& report) {
  PageJson shares = PageJson::array();
  for (const TimeCategory category : time_categories())
    shares.push_back(report.step_time > Seconds() ? report.breakdown[category] / report.step_time
                                                  : 0.0);
  return shares;
}

PageJson cautions_of(const StepReport& report, const Provenance& provenance) {
  PageJson cautions = PageJson::array();
  if (provenance.predictor_mode == "zero-shot")
    cautions.push_back("zero-shot: nothing was measured on " + report.gpu);
  const double outside = 100 * report.extrapolated_share();
  if (outside >= 1) {
    cautions.push_back(formatted(
        "%.0f %% of the kernel time is in kernels larger than those trained on", outside));
  }
  for (const std::string& text : provenance.approximations)
    cautions.push_back("approximate: " + text);
  for (const std::string& note : provenance.notes) cautions.push_back(note);
  return cautions;
}

std::string counted(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "es");
}

}  // namespace

PageJson headline_of(const StepReport& report, const Provenance& provenance) {
  // Traces say neither model nor memory.
  const bool known = provenance.mode != "replayed";
  return {{"time", time_of(report)},
          {"figures", figures_of(report, known)},
          {"memory", known ? memory_of(report.memory) : PageJson()},
          {"shares", shares_of(report)},
          {"breakdown_definition", definitions::kBreakdown},
          {"cautions", cautions_of(report, provenance)}};
}

std::string subtitle_of(const StepReport& report, const Provenance& provenance) {
  const ParallelLayout& layout = report.layout;
  std::string text = provenance.mode + " step of " + provenance.model + " on " +
                     std::to_string(report.gpus()) + " x " + report.gpu + ", " +
                     std::string(name_of(report.precision));
  if (provenance.mode == "replayed") return text;
  const std::pair<const char*, int> sizes[] = {{"tensor", layout.tensor},
                                               {"pipeline", layout.pipeline},
                                               {"data", layout.data},
                                               {"context", layout.context}};
  for (const auto& [name, size] : sizes)
    if (size > 1) text += std::string(", ") + name + " " + std::to_string(size);
  return text + ", " + counted(report.micro_batches, "micro-batch");
}

}  // namespace tessera

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/search/search_answer.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json layout_json(const SearchCase& of, const LayoutResult& result) {
  const Layout& layout = result.layout;
  Json times = Json::object();
  for (const auto& [name, time] : result.times) times[name] = time.value();
  return {{"layout", to_text(layout)},
          {"set", to_settings(layout)},
          {"tensor", layout.tensor},
          {"pipeline", layout.pipeline},
          {"virtual_stages", layout.virtual_stages},
          {"data", layout.data},
          {"context", layout.context},
          {"expert", layout.expert},
          {"micro_batch", layout.micro_batch},
          {"ends_as_layers", layout.ends_as_layers},
          {"memory_plan", layout.planned},
          {"step_time_s", result.step_time.value()},
          {"tokens_per_s", result.tokens_per_s},
          {"mfu", result.mfu},
          {"bubble_fraction", result.bubble_fraction},
          {"peak_memory_bytes", result.peak_memory.value()},
          {"memory",
           {{"allocated_bytes", result.memory.allocated.value()},
            {"reserved_bytes", result.memory.reserved.value()},
            {"context_bytes", result.memory.context.value()},
            {"nccl_bytes", result.memory.communicators.value()},
            {"device_bytes", result.memory.total().value()},
            {"within_error", fits_within_error(of, result)}}},
          {"dollars_per_step", or_null(of.economy.dollars(of.gpus, result.step_time))},
          {"joules_per_step", or_null(of.economy.joules(of.gpus, result.step_time))},
          {"times_s", std::move(times)}};
}

const char* word_of(SearchEnd end) {
  const char* kWords[] = {"complete", "out_of_time", "interrupted"};
  return kWords[static_cast<int>(end)];
}

/// Clusters whose GPUs have no price, each once.
Json unpriced_json(const std::vector<SearchCase>& cases) {
  Json list = Json::array();
  for (const SearchCase& of : cases) {
    Json entry{{"cluster", of.cluster}, {"gpu", of.gpu}};
    const bool unpriced = of.economy.dollars_per_gpu_hour <= 0;
    if (unpriced && std::ranges::find(list, entry) == list.end()) list.push_back(std::move(entry));
  }
  return list;
}

Json counts_json(const SearchCounts& counts) {
  return {{"tried", counts.tried},         {"invalid", counts.invalid},
          {"too_large", counts.too_large}, {"slower_by_bound", counts.pruned},
          {"simulated", counts.simulated}, {"failed", counts.failed},
          {"not_looked_at", counts.left}};
}

Json too_large_json(const std::optional<TooLarge>& layout) {
  if (!layout) return nullptr;
  return {{"layout", to_text(layout->layout)}, {"memory_bytes", layout->memory.value()}};
}

Json case_json(const SearchCase& of, const std::vector<SearchCase>& cases, std::size_t top) {
  Json best = Json::array(), front = Json::array();
  for (std::size_t i = 0; i < std::min(top, of.found.fitting.size()); ++i)
    best.push_back(layout_json(of, of.found.fitting[i]));
  for (const LayoutResult* layout : pareto_front(of)) front.push_back(layout_json(of, *layout));
  return {
      {"model", of.model},
      {"cluster", of.cluster},
      {"gpu", of.gpu},
      {"gpus", of.gpus},
      {"framework", of.framework},
      {"precision", of.precision},
      {"sequence_length", of.sequence_length},
      {"global_batch", of.global_batch},
      {"dollars_per_gpu_hour",
       of.economy.dollars_per_gpu_hour > 0 ? Json(of.economy.dollars_per_gpu_hour) : Json(nullptr)},
      {"watts_per_gpu", of.economy.power.value()},
      {"counts", counts_json(of.found.counts)},
      {"proven", of.found.proven()},
      {"proven_layouts", std::min(best.size(), of.found.proven_layouts())},
      {"smallest_too_large", too_large_json(of.found.smallest_too_large)},
      {"ended", word_of(of.found.end)},
      {"open_lower_bound_s",
       of.found.open_bound ? Json(of.found.open_bound->value()) : Json(nullptr)},
      {"approximations", of.approximations},
      {"efficiency", or_null(efficiency_of(of, cases))},
      {"layouts", std::move(best)},
      {"pareto", std::move(front)}};
}

}  // namespace

std::string search_json(const SearchQuestion& question, const std::vector<SearchCase>& cases,
                        std::size_t top) {
  Json list = Json::array();
  for (const SearchCase& of : cases) list.push_back(case_json(of, cases, top));
  const auto answer = best_case(question, cases);
  const bool proven =
      std::ranges::all_of(cases, [](const SearchCase& of) { return of.found.proven(); });
  Json document{{"schema", "tessera.parallelism_plan/1"},
                {"cases", std::move(list)},
                {"answer", answer ? Json(*answer) : Json(nullptr)},
                {"proven", proven},
                {"unpriced", unpriced_json(cases)}};
  if (answer && question.tokens > 0)
    document["seconds"] = time_for(question, cases[*answer], *cases[*answer].best()).value();
  return document.dump(2) + "\n";
}

}  // namespace tessera

#include "app/search/search_answer.h"

#include <limits>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

bool is_of_money(const SearchQuestion& question) {
  return question.deadline || question.objective == SearchObjective::tokens_per_dollar;
}

/// Less is better; empty with a missing_figure().
std::optional<double> score(const SearchQuestion& question, const SearchCase& of,
                            const LayoutResult& best) {
  const Seconds time = time_for(question, of, best);
  const double tokens = question.tokens > 0 ? question.tokens : of.tokens_per_step;
  std::optional<double> whole = time.value();
  if (is_of_money(question))
    whole = of.economy.dollars(of.gpus, time);
  else if (question.objective == SearchObjective::energy)
    whole = of.economy.joules(of.gpus, time);
  const bool per_token = !question.deadline && question.objective != SearchObjective::time;
  if (whole && per_token) *whole /= tokens;
  return whole;
}

}  // namespace

std::string missing_figure(const SearchQuestion& question, const Economy& economy) {
  if (is_of_money(question)) return economy.dollars_per_gpu_hour > 0 ? "" : "price";
  const bool of_energy = question.objective == SearchObjective::energy;
  return of_energy && economy.power.value() <= 0 ? "tdp" : "";
}

void check_comparable(const SearchQuestion& question, const std::vector<SearchCase>& cases) {
  std::string field, gpus;
  for (const SearchCase& of : cases) {
    const std::string missing = missing_figure(question, of.economy);
    if (missing.empty()) return;
    field = missing;
    if (gpus.find(of.gpu) == std::string::npos) gpus += (gpus.empty() ? "" : ", ") + of.gpu;
  }
  if (field.empty()) return;
  const bool money = field == "price";
  throw InputError({"cluster.node.gpu." + field, "is not known of " + gpus,
                    money ? "give it: --price " + cases.front().gpu + "=USD, per GPU and hour"
                          : "give it: --set cluster.node.gpu.tdp=..."});
}

Seconds time_for(const SearchQuestion& question, const SearchCase& of, const LayoutResult& layout) {
  if (question.tokens <= 0) return layout.step_time;
  return layout.step_time * (question.tokens / of.tokens_per_step);
}

bool fits_within_error(const SearchCase& of, const LayoutResult& layout) {
  return static_cast<double>(layout.memory.total().value()) * of.memory_high >
         static_cast<double>(of.gpu_memory.value());
}

std::optional<std::size_t> best_case(const SearchQuestion& question,
                                     const std::vector<SearchCase>& cases) {
  std::optional<std::size_t> found;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const LayoutResult* best = cases[i].best();
    if (best == nullptr) continue;
    if (question.deadline && time_for(question, cases[i], *best) > *question.deadline) continue;
    const std::optional<double> of_case = score(question, cases[i], *best);
    if (!of_case || *of_case >= lowest) continue;
    lowest = *of_case;
    found = i;
  }
  return found;
}

std::optional<double> efficiency_of(const SearchCase& of, const std::vector<SearchCase>& cases) {
  const SearchCase* fewest = &of;
  for (const SearchCase& other : cases)
    if (other.model == of.model && other.cluster == of.cluster && other.gpus < fewest->gpus)
      fewest = &other;
  if (of.best() == nullptr || fewest->best() == nullptr) return std::nullopt;
  return of.best()->tokens_per_s / of.gpus / (fewest->best()->tokens_per_s / fewest->gpus);
}

std::optional<std::size_t> largest_model(const std::vector<SearchCase>& cases) {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].best() == nullptr) continue;
    if (!largest || cases[i].parameters > cases[*largest].parameters) largest = i;
  }
  return largest;
}

std::vector<const LayoutResult*> pareto_front(const SearchCase& of) {
  std::vector<const LayoutResult*> front;
  for (const LayoutResult& layout : of.found.fitting) {
    if (!front.empty() && layout.memory.total() >= front.back()->memory.total()) continue;
    if (!front.empty() && layout.step_time == front.back()->step_time) front.pop_back();
    front.push_back(&layout);
  }
  return front;
}

}  // namespace tessera

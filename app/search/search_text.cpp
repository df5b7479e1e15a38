#include <algorithm>
#include <cmath>

#include "app/search/search_answer.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

std::string number_or_dash(std::optional<double> value, const char* format) {
  if (!value) return "-";
  return formatted(format, *value);
}

/// Dollars and kilowatt-hours of a billion tokens.
std::optional<double> dollars_per_billion(const SearchCase& of, const LayoutResult& layout) {
  return of.economy.dollars(of.gpus, Seconds(1e9 / layout.tokens_per_s));
}
std::optional<double> kwh_per_billion(const SearchCase& of, const LayoutResult& layout) {
  const auto joules = of.economy.joules(of.gpus, Seconds(1e9 / layout.tokens_per_s));
  if (!joules) return std::nullopt;
  return *joules / 3.6e6;
}

std::string counts_text(const SearchCounts& counts) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  std::string text = number(counts.tried) + " layouts: " + number(counts.invalid) +
                     " against a rule, " + number(counts.too_large) + " too large, " +
                     number(counts.pruned) + " slower by bound, " + number(counts.simulated) +
                     " simulated";
  if (counts.failed > 0) text += ", " + number(counts.failed) + " failed";
  if (counts.left > 0) text += ", " + number(counts.left) + " without an answer";
  return text + "\n";
}

/// "where the time goes: backward 54 %, forward 25 %, ...": the largest parts.
std::string why_text(const LayoutResult& layout) {
  constexpr std::size_t kParts = 6;
  auto times = layout.times;
  std::ranges::stable_sort(times, std::ranges::greater{},
                           [](const auto& part) { return part.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kParts, times.size()); ++i)
    text += (i > 0 ? ", " : "") + times[i].first +
            formatted(" %.1f %%", 100 * (times[i].second / layout.step_time));
  return text;
}

const std::string kHead = formatted("%10s %11s %6s %9s %11s %11s", "step time", "token/s/GPU",
                                    "MFU", "memory", "USD/1e9 tok", "kWh/1e9 tok");

constexpr std::size_t kIndent = 4;

/// The figures below kHead, and the layout on a line of its own behind `head`, which is kIndent
/// wide.
std::string layout_lines(const std::string& head, const SearchCase& of,
                         const LayoutResult& layout) {
  return head + to_text(layout.layout) + "\n" + std::string(kIndent, ' ') +
         formatted("%10s %11.1f %4.1f %% %9s %11s %11s\n", to_short_text(layout.step_time).c_str(),
                   layout.tokens_per_s / of.gpus, layout.mfu * 100,
                   to_short_text(layout.memory.total()).c_str(),
                   number_or_dash(dollars_per_billion(of, layout), "%.2f").c_str(),
                   number_or_dash(kwh_per_billion(of, layout), "%.1f").c_str());
}

std::string title(const SearchCase& of) {
  return of.model + " on " + std::to_string(of.gpus) + " x " + of.gpu + " of " + of.cluster;
}

/// What all layouts have in common; the case's cluster is in the title.
std::string job_text(const SearchCase& of) {
  return formatted("framework %s, %s, sequences of %lld tokens, %lld in a step\n",
                   of.framework.c_str(), of.precision.c_str(),
                   static_cast<long long>(of.sequence_length),
                   static_cast<long long>(of.global_batch));
}

std::string nothing_fits_text(const SearchCase& of) {
  if (!of.found.smallest_too_large) return "no layout fits\n";
  const TooLarge& smallest = *of.found.smallest_too_large;
  return "no layout fits: the smallest, " + to_text(smallest.layout) + ", needs at least " +
         to_short_text(smallest.memory) + " of " + to_short_text(of.gpu_memory) +
         "; tessera fit says what holds it and what would make it fit\n";
}

std::string proof_text(const SearchCase& of, std::size_t top) {
  const SearchResult& found = of.found;
  if (!found.proven()) {
    const std::size_t first = std::min(top, found.proven_layouts());
    const std::string known = first == 0 ? "unproven, "
                                         : "the first " + std::to_string(first) +
                                               (first == 1 ? " is" : " are") +
                                               " the fastest of all layouts that fit; behind that "
                                               "unproven, ";
    const char* why = found.end == SearchEnd::interrupted   ? "the search was interrupted"
                      : found.end == SearchEnd::out_of_time ? "the time was over"
                                                            : "simulations failed";
    const std::string open = found.open_bound->value() > 0
                                 ? "a layout without an answer may take " +
                                       to_short_text(*found.open_bound) +
                                       ", the lowest bound still open"
                                 : "not every layout has a lower bound yet";
    return known + why + ": " + open + "\n";
  }
  if (found.fitting.empty()) return nothing_fits_text(of);
  const std::size_t shown = std::min(top, found.fitting.size());
  return "the first " + std::to_string(shown) + (shown == 1 ? " is" : " are") +
         " the fastest of all layouts that fit\n";
}

/// Those of the layouts shown that may not fit, and how to ask for some that do.
std::string tight_text(const SearchCase& of, std::size_t top) {
  std::string numbers;
  for (std::size_t i = 0; i < std::min(top, of.found.fitting.size()); ++i)
    if (fits_within_error(of, of.found.fitting[i]))
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(i + 1);
  if (numbers.empty()) return "";
  const double sure = static_cast<double>(of.gpu_memory.value()) / of.memory_high / (1 << 30);
  return "fit within the error alone: " + numbers +
         formatted(
             "; the 80 %% interval reaches %.2f times the simulated (%s), and "
             "--set cluster.node.gpu.memory=%.1fGiB leaves that room\n",
             of.memory_high, of.memory_basis.c_str(), std::floor(10 * sure) / 10);
}

/// GPUs without a price, each once: their costs are dashes, and no question about money sees them.
std::string unpriced_text(const std::vector<SearchCase>& cases) {
  std::string text;
  for (const SearchCase& of : cases) {
    const std::string line = "no price is known of " + of.gpu + " of " + of.cluster + ": --price " +
                             of.gpu + "=USD, per GPU and hour\n";
    if (of.economy.dollars_per_gpu_hour <= 0 && text.find(line) == std::string::npos) text += line;
  }
  return text;
}

/// Where models or clusters are not what they stand for, each line once.
std::string approximate_text(const std::vector<SearchCase>& cases) {
  std::string text;
  for (const SearchCase& of : cases)
    for (const std::string& about : of.approximations)
      if (text.find(": " + about + "\n") == std::string::npos)
        text += "approximate: " + about + "\n";
  return text;
}

std::string detailed(const SearchCase& of, std::size_t top) {
  std::string text = title(of) + "\n" + job_text(of) + counts_text(of.found.counts) +
                     proof_text(of, top) + tight_text(of, top) + unpriced_text({of}) +
                     approximate_text({of});
  if (!of.found.failure.empty()) text += "failed: " + of.found.failure + "\n";
  if (of.best() == nullptr) return text;
  text += "\n" + std::string(kIndent, ' ') + kHead + "\n";
  const std::size_t shown = std::min(top, of.found.fitting.size());
  for (std::size_t i = 0; i < shown; ++i)
    text += layout_lines(formatted("%2zu  ", i + 1), of, of.found.fitting[i]);
  text += "\nwhere the time goes\n";
  for (std::size_t i = 0; i < shown; ++i)
    text += formatted("%2zu  ", i + 1) + why_text(of.found.fitting[i]) + "\n";
  const auto front = pareto_front(of);
  if (front.size() > 1) {
    text += "\nless memory for more time, of those simulated\n";
    for (const LayoutResult* layout : front) {
      if (layout != of.best()) text += layout_lines(std::string(kIndent, ' '), of, *layout);
    }
  }
  text += "\nfirst  " + to_settings(of.best()->layout) + "\n";
  return text;
}

std::string case_line(const SearchCase& of, const std::vector<SearchCase>& cases) {
  const LayoutResult* best = of.best();
  const auto efficiency = efficiency_of(of, cases);
  const std::string head =
      formatted("%s on %d x %s, efficiency %s: ", of.model.c_str(), of.gpus, of.gpu.c_str(),
                efficiency ? formatted("%.1f %%", 100 * *efficiency).c_str() : "-");
  return best != nullptr ? layout_lines(head, of, *best)
                         : head + (of.found.proven() ? "nothing fits " : "nothing found yet for ") +
                               of.cluster + "\n";
}

std::string duration_text(Seconds time) {
  const double hours = time.value() / 3600;
  if (hours < 1) return to_short_text(time);
  return hours < 48 ? formatted("%.1f hours", hours) : formatted("%.1f days", hours / 24);
}

/// What all of the question's tokens take and cost.
std::string training_text(const SearchQuestion& question, const SearchCase& of) {
  if (question.tokens <= 0) return "";
  const Seconds time = time_for(question, of, *of.best());
  const auto dollars = of.economy.dollars(of.gpus, time);
  const auto joules = of.economy.joules(of.gpus, time);
  std::string text = formatted("%.4g tokens take %s", question.tokens, duration_text(time).c_str());
  if (dollars) text += formatted(", %.0f USD", *dollars);
  if (joules) text += formatted(", at most %.0f kWh", *joules / 3.6e6);
  return text + "\n";
}

std::string floor_text(const SearchQuestion& question, const std::vector<SearchCase>& cases) {
  if (!question.efficiency_floor) return "";
  std::string text;
  for (const SearchCase& of : cases) {
    const auto efficiency = efficiency_of(of, cases);
    if (!efficiency || *efficiency >= *question.efficiency_floor) continue;
    return formatted("below %.0f %% of the efficiency of the fewest: %s, %.1f %%\n",
                     100 * *question.efficiency_floor, title(of).c_str(), 100 * *efficiency);
  }
  return formatted("nowhere below %.0f %% of the efficiency of the fewest\n",
                   100 * *question.efficiency_floor);
}

std::string answer_text(const SearchQuestion& question, const std::vector<SearchCase>& cases) {
  std::string text = floor_text(question, cases);
  const bool models = std::ranges::any_of(
      cases, [&](const SearchCase& of) { return of.model != cases.front().model; });
  if (const auto largest = largest_model(cases); models && largest)
    text += "largest that fits: " + cases[*largest].model + "\n";
  const char* kBest[] = {"fastest", "most tokens per dollar", "least energy per token"};
  const std::string what = question.deadline ? "cheapest in " + duration_text(*question.deadline)
                                             : kBest[static_cast<int>(question.objective)];
  const auto best = best_case(question, cases);
  if (!best) return text + what + ": none\n";
  const SearchCase& of = cases[*best];
  const bool proven =
      std::ranges::all_of(cases, [](const SearchCase& each) { return each.found.proven(); });
  return text + what + (proven ? ": " : " (unproven): ") + title(of) + ", " +
         to_text(of.best()->layout) + "\n" + training_text(question, of);
}

std::string compared(const SearchQuestion& question, const std::vector<SearchCase>& cases) {
  std::string text = std::string(kIndent, ' ') + kHead + "\n";
  for (const SearchCase& of : cases) text += case_line(of, cases);
  for (const SearchCase& of : cases)
    if (const std::string tight = tight_text(of, 1); !tight.empty())
      text += title(of) + ": " + tight;
  for (const SearchCase& of : cases)
    if (!of.found.proven()) text += title(of) + ": " + proof_text(of, 1);
  text += unpriced_text(cases) + approximate_text(cases);
  return text + "\n" + answer_text(question, cases);
}

}  // namespace

std::string search_text(const SearchQuestion& question, const std::vector<SearchCase>& cases,
                        std::size_t top) {
  if (cases.size() > 1) return compared(question, cases);
  std::string text = detailed(cases.front(), top);
  if (question.tokens > 0 && cases.front().best() != nullptr)
    text += "\n" + answer_text(question, cases);
  return text;
}

}  // namespace tessera

// Relations of random scenarios that tests/app/explain/relations.h describes; ten thousand take
// hours. relations_study [COUNT [FIRST_SEED [JOBS]]]
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/app/explain/random_scenario.h"
#include "tests/app/explain/relations.h"

namespace {

void print_broken(std::uint64_t seed, const tessera::test::RelationsRun& run) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), run.error.c_str());
  for (const auto& broken : run.broken)
    std::printf("  %s: %.9g -> %.9g (%+.4f %%)\n", broken.change.c_str(), broken.before,
                broken.after, 100 * (broken.after / broken.before - 1));
  for (const auto& setting : tessera::test::random_settings(seed))
    std::printf("  --set '%s'\n", setting.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 10'000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const int jobs = argc > 3 ? std::atoi(argv[3]) : 2;
  constexpr int kBatch = 100;
  int simulated = 0, checked = 0, bad = 0;
  std::map<std::string, int> broken;
  while (simulated < wanted) {
    std::fflush(stdout);  // or each fork would print it once more
    const auto runs = tessera::test::run_relations(seed, kBatch, jobs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      simulated += runs[i].refused ? 0 : 1;
      checked += runs[i].checked;
      for (const auto& relation : runs[i].broken) ++broken[relation.change];
      if (runs[i].broken.empty() && runs[i].error.empty()) continue;
      ++bad;
      print_broken(seed + i, runs[i]);
    }
    seed += kBatch;
    std::fprintf(stderr, "%d simulated, %d relations, %d scenarios break one\n", simulated, checked,
                 bad);
  }
  std::printf("%d scenarios, %d relations; %d scenarios break one\n", simulated, checked, bad);
  for (const auto& [change, count] : broken) std::printf("  %s: %d\n", change.c_str(), count);
  return bad == 0 ? 0 : 1;
}

// Runs random scenarios through the whole flow and says what became of them; ten thousand take a
// few minutes. reliability_study [COUNT [FIRST_SEED [JOBS]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/app/explain/random_scenario.h"

int main(int argc, char** argv) {
  using tessera::test::RandomRun;
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 10'000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const int jobs = argc > 3 ? std::atoi(argv[3]) : 2;
  constexpr int kBatch = 500;
  constexpr double kSecondsPerRun = 60;
  int ran = 0;
  int refused = 0;
  int failed = 0;
  int most_gpus = 0;
  double longest = 0;
  std::uint64_t longest_seed = 0;
  while (ran < wanted) {
    const auto runs = tessera::test::run_random_scenarios(seed, kBatch, jobs, kSecondsPerRun);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const RandomRun& run = runs[i];
      ran += run.outcome == RandomRun::Outcome::ran ? 1 : 0;
      refused += run.outcome == RandomRun::Outcome::refused ? 1 : 0;
      most_gpus = std::max(most_gpus, run.gpus);
      if (run.wall_seconds > longest) {
        longest = run.wall_seconds;
        longest_seed = seed + i;
      }
      if (run.outcome != RandomRun::Outcome::failed) continue;
      ++failed;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed + i), run.text.c_str());
      for (const auto& setting : tessera::test::random_settings(seed + i)) {
        std::printf("  --set '%s'\n", setting.c_str());
      }
    }
    seed += kBatch;
    std::fprintf(stderr, "%d ran, %d refused, %d failed\n", ran, refused, failed);
  }
  std::printf("%d ran (up to %d GPUs), %d draws refused as impossible, %d failed\n", ran, most_gpus,
              refused, failed);
  std::printf("longest %.2f s: seed %llu\n", longest,
              static_cast<unsigned long long>(longest_seed));
  return failed == 0 ? 0 : 1;
}

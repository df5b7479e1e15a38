// Tables of results/plans/libra.txt: every planner on one iteration of the same eleven models.
// Usage: libra_study [MODEL]; writes to stdout. A process per model, two at a time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predictor/weights/weights.h"
#include "sim/config/load.h"
#include "sim/plan/memory/megatron_planner.h"
#include "sim/plan/memory/memory_plan.h"
#include "sim/plan/plan.h"
#include "sim/process/answer.h"
#include "sim/remat/libra_planner.h"
#include "sim/remat/planner.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

using remat::ByteCount;
using remat::Nanoseconds;

struct Model {
  const char* id;
  int batch;                ///< of the tables at one batch: about half of the largest on the GPU
  int tokens = 0;           ///< of a sequence; 0: images
  bool has_layers = false;  ///< that Megatron's presets are made for
};
constexpr Model kModels[] = {{"resnet-50", 96},
                             {"resnet-101", 64},
                             {"vgg-16", 96},
                             {"densenet-121", 64},
                             {"googlenet", 160},
                             {"inception-v4", 48},
                             {"u-net", 6},
                             {"vit-b-16", 56, 0, true},
                             {"cait-xxs24", 72, 0, true},
                             {"bert-large", 4, 512, true},
                             {"gpt2", 4, 1024, true}};
constexpr const char* kPlanners[] = {
    "tessera", "no swap",  "libra", "unrefined", "chen_sqrt",      "chen_greedy",
    "rotor",   "knapsack", "dtr",   "capuchin",  "megatron_block", "megatron_uniform"};
constexpr double kShares[] = {0.8, 0.6, 0.5, 0.4, 0.3, 0.2};
constexpr double kTimeShares[] = {0.8, 0.6, 0.4, 0.2};  ///< with a table of their own

/// A step of one V100 with 16 GB as planners see it.
struct Iteration {
  ChunkMemoryPlan chunk;
  remat::HostLink link;
  ByteCount room = 0;  ///< for tensors
  ByteCount peak = 0;  ///< without a plan

  const remat::Graph& graph() const { return chunk.graph.graph; }
  ByteCount at(double share) const {
    const ByteCount held = graph().static_bytes();
    return held + static_cast<ByteCount>(share * static_cast<double>(peak - held));
  }
};

Iteration iteration(const Model& model, int batch) {
  static const std::filesystem::path root(TESSERA_SOURCE_DIR);
  static const Catalog catalog(root / "configs");
  static const PredictorWeights weights = load_weights(root / "predictor/weights/tessera.pb");
  std::vector<std::string> fields = {"model=" + std::string(model.id),
                                     "training.micro_batch=" + std::to_string(batch),
                                     "training.global_batch=" + std::to_string(batch)};
  if (model.tokens > 0) {
    fields.push_back("training.sequence_length=" + std::to_string(model.tokens));
  } else {
    fields.insert(fields.end(), {"training.optimizer=sgd", "training.clip_gradients=false"});
  }
  const auto planned = [&](const std::string& budget) {
    std::vector<std::string> with_plan = fields;
    with_plan.insert(with_plan.end(), {"memory.planner=tessera", "memory.thorough=false",
                                       "memory.budget=" + budget});
    return plan_step_memory(
        load_scenario(root / "tests/bench/libra_study.yaml", with_plan, catalog), weights);
  };
  const StageMemoryPlan plain = planned("99TB").memory.stages.front();
  // Any plan has the operators; the next where none leaves what the allocator holds besides.
  const auto within = [&](std::int64_t percent) {
    return planned(std::to_string(plain.base_peak.value() / 100 * percent) + "B");
  };
  PlannedSteps steps = within(98);
  for (const std::int64_t percent : {95, 90, 80, 70})
    if (!steps.memory.feasible()) steps = within(percent);
  Iteration made{.chunk = std::move(steps.memory.stages.front().chunks.front()),
                 .link = steps.memory.link};
  made.room = room_for_tensors(steps.planned).value();
  made.peak = remat::base_peak(made.graph());
  return made;
}

struct Answer {
  bool fits = false;
  Nanoseconds time = 0;
  double plan_ms = 0;
};

/// CPU time of this process, which has one thread: other jobs of the machine do not count. Below
/// the largest working set there is no plan, and none is looked for.
Answer ask(const std::string& name, const Model& model, const Iteration& step, ByteCount budget) {
  if (step.graph().ops() == 0 || budget < remat::lower_bound(step.graph()).bytes) return {};
  std::unique_ptr<remat::Planner> planner;
  if (name.starts_with("megatron")) {
    if (!model.has_layers) return {};
    planner = make_megatron_planner(memory_planner_of(name), 0, step.chunk.ops, step.chunk.graph);
  } else if (name == "unrefined") {
    planner = std::make_unique<remat::LibraPlanner>(false);
  } else {
    planner = remat::make_planner(name == "no swap" ? "tessera" : name);
  }
  remat::PlanRequest request{.budget = budget, .effort = remat::Effort::fast};
  if (name != "no swap") request.link = step.link;
  const std::clock_t start = std::clock();
  const remat::PlannedSchedule plan = planner->plan(step.graph(), request);
  const double ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const remat::ReplayResult cost = remat::replay(step.graph(), plan.schedule, request.link);
  return {.fits = cost.peak <= budget, .time = cost.time, .plan_ms = ms};
}

using Lines = std::vector<std::string>;

std::string number(const char* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string cell(const std::string& text) {
  return std::string(text.size() < 11 ? 12 - text.size() : 1, ' ') + text;
}

/// `text` to at most `width` characters, filled up with spaces.
std::string left(std::string text, std::size_t width) {
  text.resize(width, ' ');
  return text;
}

std::string head(const char* first) {
  std::string line = left(first, 14);
  for (const std::string name : kPlanners) line += cell(name.substr(0, 11));
  return line + "\n";
}

/// What one model says, for all tables.
struct Row {
  const Model* model;
  Iteration step;
  std::vector<std::vector<Answer>> answers;  ///< by planner and share
};

Row row_of(const Model& model) {
  Row row{.model = &model, .step = iteration(model, model.batch), .answers = {}};
  for (const char* name : kPlanners) {
    row.answers.emplace_back();
    for (const double share : kShares)
      row.answers.back().push_back(ask(name, model, row.step, row.step.at(share)));
  }
  return row;
}

double slowdown(const Row& row, const Answer& answer) {
  return static_cast<double>(answer.time) / static_cast<double>(row.step.graph().base_time());
}

/// A cell per planner, of the answers at `share`.
std::string line(const Row& row, double share,
                 const std::function<std::string(const Answer&)>& text) {
  const auto at = static_cast<std::size_t>(std::ranges::find(kShares, share) - kShares);
  std::string line = left(row.model->id, 14);
  for (const auto& answers : row.answers) line += cell(text(answers[at]));
  return line + "\n";
}

/// The tightest budget that is met at no more than 1.3 times the time.
std::string peak_line(const Row& row) {
  const auto gibibytes = [](remat::ByteCount bytes) {
    return number("%.1f", static_cast<double>(bytes) / (1 << 30));
  };
  const std::string peak = gibibytes(row.step.peak);
  std::string line = left(row.model->id, 9) + std::string(5 - peak.size(), ' ') + peak;
  for (const auto& answers : row.answers) {
    double least = 0;
    for (std::size_t i = 0; i < answers.size(); ++i)
      if (answers[i].fits && slowdown(row, answers[i]) <= 1.3) least = kShares[i];
    line += cell(least > 0 ? gibibytes(row.step.at(least)) : "-");
  }
  return line + "\n";
}

std::string time_line(const Row& row, double share) {
  return line(row, share, [&](const Answer& answer) {
    return answer.fits ? number("%.3f", slowdown(row, answer)) : std::string("-");
  });
}

/// The time that libra's refinement takes off its greedy plan.
std::string refinement_line(const Row& row) {
  const auto of = [&](const char* name) -> const std::vector<Answer>& {
    return row.answers[static_cast<std::size_t>(
        std::ranges::find(kPlanners, std::string_view(name)) - kPlanners)];
  };
  std::string line = left(row.model->id, 14);
  for (std::size_t i = 0; i < std::size(kShares); ++i) {
    const Answer& refined = of("libra")[i];
    const Answer& greedy = of("unrefined")[i];
    const double gain =
        100 - 100 * static_cast<double>(refined.time) / static_cast<double>(greedy.time);
    const std::string text = refined.fits && greedy.fits ? number("%.2f", gain) : "-";
    line += std::string(text.size() < 7 ? 8 - text.size() : 1, ' ') + text;
  }
  return line + "\n";
}

/// The largest batch without a plan, in steps of a power of two.
int largest_batch(const Model& model) {
  int plain = model.batch;
  for (int step = model.batch; step >= 1; step /= 2) {
    for (Iteration next = iteration(model, plain + step); next.peak <= next.room;
         next = iteration(model, plain + step))
      plain += step;
  }
  return plain;
}

std::string throughput_lines(const Model& model) {
  const int plain = largest_batch(model);
  const Iteration base = iteration(model, plain);
  const double rate = plain / static_cast<double>(base.graph().base_time());
  std::string lines;
  for (const double times : {1.5, 2.0, 3.0, 4.0}) {
    const int batch = static_cast<int>(times * plain);
    const Iteration step = iteration(model, batch);
    const std::string count = std::to_string(batch);
    lines += left(model.id, 9) + std::string(5 - count.size(), ' ') + count;
    for (const char* name : kPlanners) {
      const Answer answer = ask(name, model, step, step.room);
      const double relative = batch / static_cast<double>(answer.time) / rate;
      lines += cell(answer.fits ? number("%.3f", relative) : "-");
    }
    lines += "\n";
  }
  return lines;
}

/// The lines of a model, one entry for each table.
Lines lines_of(const Model& model) {
  const Row row = row_of(model);
  Lines lines = {peak_line(row)};
  for (const double share : kTimeShares) lines.push_back(time_line(row, share));
  lines.push_back(refinement_line(row));
  lines.push_back(line(row, 0.5, [](const Answer& answer) {
    return answer.time > 0 ? number("%.1f", answer.plan_ms) : std::string("-");
  }));
  lines.push_back(throughput_lines(model));
  return lines;
}

/// What stands above each table.
Lines headings() {
  Lines list = {
      "Peak without a plan [GiB], then the tightest budget met at no more than 1.3 times the "
      "time\n(states and .8, .6, .5, .4, .3 or .2 of the activations)\n" +
      head("model    peak")};
  for (const double share : kTimeShares)
    list.push_back("Time over that without a plan, at " + number("%.1f", share) +
                   " of the activations\n" + head("model"));
  std::string shares = left("model", 14);
  for (const double share : kShares) shares += "     " + number("%.1f", share);
  list.push_back("What refinement takes off libra's time [%], by share of the activations\n" +
                 shares + "\n");
  list.push_back("Time of planning [ms], at 0.5 of the activations\n" + head("model"));
  list.push_back(
      "Samples per second over those of the largest batch without a plan, with so many times "
      "that batch\n" +
      head("model   batch"));
  return list;
}

void all_tables(const std::vector<const Model*>& models) {
  std::vector<std::function<Lines()>> calls;
  for (const Model* model : models) calls.push_back([model] { return lines_of(*model); });
  const auto answers = forked_each<Lines>(calls, 2, [&](std::size_t ended) {
    std::fprintf(stderr, "%zu of %zu models planned\n", ended, models.size());
  });
  std::printf(
      "One iteration of one V100 with 16 GB, hf_eager; -: over the budget, or no preset for "
      "the model. no swap: tessera with recomputation alone;\nunrefined: libra without its "
      "refinement. All with the fast effort; capuchin, libra and tessera may copy\n");
  const Lines above = headings();
  for (std::size_t table = 0; table < above.size(); ++table) {
    std::printf("\n%s", above[table].c_str());
    for (const auto& answer : answers) std::printf("%s", answer.value()[table].c_str());
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  std::vector<const tessera::Model*> models;
  for (const tessera::Model& model : tessera::kModels)
    if (argc < 2 || std::string(argv[1]) == model.id) models.push_back(&model);
  tessera::all_tables(models);
}

// Tables of results/plans/libra.txt: every planner on one iteration of the same eleven models.
// Usage: libra_study [MODEL]; writes to stdout.
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
  const std::int64_t nearly = plain.base_peak.value() - plain.base_peak.value() / 50;
  PlannedSteps steps = planned(std::to_string(nearly) + "B");
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

/// CPU time of this process, which has one thread: other jobs of the machine do not count.
Answer ask(const std::string& name, const Model& model, const Iteration& step, ByteCount budget) {
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

void head(const char* first) {
  std::printf("%-14s", first);
  for (const char* name : kPlanners) std::printf(" %11.11s", name);
  std::printf("\n");
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
void table(const std::vector<Row>& rows, double share,
           const std::function<std::string(const Row&, const Answer&)>& cell) {
  const auto at = static_cast<std::size_t>(std::ranges::find(kShares, share) - kShares);
  head("model");
  for (const Row& row : rows) {
    std::printf("%-14s", row.model->id);
    for (const auto& answers : row.answers) std::printf(" %11s", cell(row, answers[at]).c_str());
    std::printf("\n");
  }
  std::printf("\n");
}

std::string number(const char* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

void times(const std::vector<Row>& rows) {
  for (const double share : {0.8, 0.6, 0.4, 0.2}) {
    std::printf("Time over that without a plan, at %.1f of the activations\n", share);
    table(rows, share, [](const Row& row, const Answer& answer) {
      return answer.fits ? number("%.3f", slowdown(row, answer)) : std::string("-");
    });
  }
}

/// The time that libra's refinement takes off its greedy plan.
void refinements(const std::vector<Row>& rows) {
  const auto at = [](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(kPlanners, std::string_view(name)) -
                                    kPlanners);
  };
  std::printf("What refinement takes off libra's time [%%], by share of the activations\n%-14s",
              "model");
  for (const double share : kShares) std::printf(" %7.1f", share);
  std::printf("\n");
  for (const Row& row : rows) {
    std::printf("%-14s", row.model->id);
    for (std::size_t i = 0; i < std::size(kShares); ++i) {
      const Answer& refined = row.answers[at("libra")][i];
      const Answer& greedy = row.answers[at("unrefined")][i];
      const double gain =
          100 - 100 * static_cast<double>(refined.time) / static_cast<double>(greedy.time);
      std::printf(" %7s", refined.fits && greedy.fits ? number("%.2f", gain).c_str() : "-");
    }
    std::printf("\n");
  }
  std::printf("\n");
}

void plan_times(const std::vector<Row>& rows) {
  std::printf("Time of planning [ms], at 0.5 of the activations\n");
  table(rows, 0.5, [](const Row&, const Answer& answer) {
    return answer.time > 0 ? number("%.1f", answer.plan_ms) : std::string("-");
  });
}

/// The tightest budget that is met at no more than 1.3 times the time.
void peaks(const std::vector<Row>& rows) {
  std::printf(
      "Peak without a plan [GiB], then the tightest budget met at no more than 1.3 times the "
      "time\n(states and .8, .6, .5, .4, .3 or .2 of the activations)\n");
  head("model    peak");
  for (const Row& row : rows) {
    std::printf("%-9.9s%5.1f", row.model->id, static_cast<double>(row.step.peak) / (1 << 30));
    for (const auto& answers : row.answers) {
      double least = 0;
      for (std::size_t i = 0; i < answers.size(); ++i)
        if (answers[i].fits && slowdown(row, answers[i]) <= 1.3) least = kShares[i];
      const double bytes = static_cast<double>(row.step.at(least)) / (1 << 30);
      std::printf(" %11s", least > 0 ? number("%.1f", bytes).c_str() : "-");
    }
    std::printf("\n");
  }
  std::printf("\n");
}

void throughputs(const std::vector<const Model*>& models) {
  std::printf(
      "Samples per second over those of the largest batch without a plan, with so many times "
      "that batch\n");
  head("model   batch");
  for (const Model* model : models) {
    int plain = model->batch;
    for (int step = model->batch; step >= 1; step /= 2) {
      for (Iteration next = iteration(*model, plain + step); next.peak <= next.room;
           next = iteration(*model, plain + step))
        plain += step;
    }
    const Iteration base = iteration(*model, plain);
    const double rate = plain / static_cast<double>(base.graph().base_time());
    for (const double times : {1.5, 2.0, 3.0, 4.0}) {
      const int batch = static_cast<int>(times * plain);
      const Iteration step = iteration(*model, batch);
      std::printf("%-9.9s%5d", model->id, batch);
      for (const char* name : kPlanners) {
        const Answer answer = ask(name, *model, step, step.room);
        const double relative = batch / static_cast<double>(answer.time) / rate;
        std::printf(" %11s", answer.fits ? number("%.3f", relative).c_str() : "-");
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

void all_tables(const std::vector<const Model*>& models) {
  std::printf(
      "One iteration of one V100 with 16 GB, hf_eager; -: over the budget, or no preset for "
      "the model. no swap: tessera with recomputation alone;\nunrefined: libra without its "
      "refinement. All with the fast effort; capuchin, libra and tessera may copy\n\n");
  std::vector<Row> rows;
  for (const Model* model : models) {
    rows.push_back(row_of(*model));
    std::fprintf(stderr, "%s planned\n", model->id);
  }
  peaks(rows);
  times(rows);
  refinements(rows);
  plan_times(rows);
  std::fflush(stdout);
  throughputs(models);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  std::vector<const tessera::Model*> models;
  for (const tessera::Model& model : tessera::kModels)
    if (argc < 2 || std::string(argv[1]) == model.id) models.push_back(&model);
  tessera::all_tables(models);
}

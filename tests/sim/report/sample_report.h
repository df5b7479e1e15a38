#pragma once

#include "sim/report/metrics.h"
#include "sim/report/provenance.h"
#include "tests/sim/trace/handmade_step.h"
#include "tests/sim/trace/ideal_timeline.h"

namespace tessera::testing {

/// Two stages, one micro-batch: 6 s, of which every GPU computes 3 s and idles 3 s.
inline StepReport sample_report() {
  TimedProgram timed = one_f_one_b_step(2, 1);
  timed.program.tokens_per_step = 600;
  timed.program.sequences_per_step = 3;
  timed.program.model_flops = Flops(300);
  timed.program.hardware_flops = Flops(360);
  timed.program.stages[0].static_memory = 30_B;
  Timeline timeline = ideal_timeline(timed);
  timeline.peak_memory = {70_B, 40_B};
  return measure(timed, timeline);
}

inline Provenance sample_provenance() {
  return {.scenario = "sample",
          .model = "two-layers",
          .mode = "training",
          .framework = "megatron",
          .recompute = "full",
          .predictor = "roofline",
          .predictor_mode = "zero-shot",
          .predictor_effect = "architecture figures alone",
          .tessera_version = "1.2.3"};
}

}  // namespace tessera::testing

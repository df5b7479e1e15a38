#include "sim/engine/memory/rest_of_step.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr std::int32_t kNoTensor = -1;

class RestBuilder {
 public:
  RestBuilder(const MemoryHost& host, const TensorLives& lives, const OpUses& uses,
              const MemoryNow& now)
      : host_(host),
        lives_(lives),
        uses_(uses),
        now_(now),
        wanted_(lives.all().size(), 0),
        graph_id_(lives.all().size(), kNoTensor),
        runnable_(static_cast<std::size_t>(uses.ops()), Known::open) {}

  RestOfStep run() && {
    collect_done();
    const auto done = static_cast<remat::OpId>(rest_.ops.size());
    for (std::int32_t op = now_.op; op < uses_.ops(); ++op)
      if (uses_.computes(op)) rest_.ops.push_back(op);
    count_static();
    for (std::size_t i = 0; i < rest_.ops.size(); ++i)
      add(rest_.ops[i], static_cast<remat::OpId>(i) < done);
    rest_.graph = remat::Graph("rest of the step", specs_, {}, static_.value(), -1,
                               {.done = done, .gone = gone_});
    return std::move(rest_);
  }

 private:
  enum class Known : std::uint8_t { open, yes, no };

  char& wanted(std::int32_t tensor) { return wanted_[static_cast<std::size_t>(tensor)]; }
  const TensorLife& life(std::int32_t tensor) const {
    return lives_.all()[static_cast<std::size_t>(tensor)];
  }

  /// Makers of what is on the device, and of what of their inputs is gone and can be made again.
  void collect_done() {
    std::vector<std::int32_t> live;
    for (std::int32_t tensor = 0; tensor < static_cast<std::int32_t>(lives_.all().size()); ++tensor)
      if (uses_.can_leave(tensor) && uses_.maker(tensor) < now_.op && now_.is_live(tensor))
        live.push_back(tensor);
    for (const std::int32_t tensor : live) wanted(tensor) = 1;
    for (const std::int32_t tensor : live) can_run(uses_.maker(tensor));
    for (const std::int32_t tensor : live) rest_.ops.push_back(uses_.maker(tensor));
    for (std::size_t i = 0; i < rest_.ops.size(); ++i) {
      if (!can_run(rest_.ops[i])) continue;
      for (const std::int32_t tensor : uses_.read_by(rest_.ops[i])) {
        if (wanted(tensor) != 0) continue;
        wanted(tensor) = 1;
        rest_.ops.push_back(uses_.maker(tensor));
      }
    }
    std::ranges::sort(rest_.ops);
    const auto same = std::ranges::unique(rest_.ops);
    rest_.ops.erase(same.begin(), same.end());
  }

  /// Whether all that `op` reads is on the device or can be made again; inputs precede their op.
  bool can_run(std::int32_t op) {
    Known& known = runnable_[static_cast<std::size_t>(op)];
    if (known != Known::open) return known == Known::yes;
    bool can = uses_.can_rerun(op);
    for (const std::int32_t tensor : uses_.read_by(op)) {
      if (!can) break;
      can = wanted(tensor) == 1 || can_run(uses_.maker(tensor));
    }
    runnable_[static_cast<std::size_t>(op)] = can ? Known::yes : Known::no;
    return can;
  }

  /// The least that other memory takes; what it takes at an op besides is the op's workspace.
  void count_static() {
    Bytes least = now_.besides;
    // Communication runs beside the program's order: what is held now beyond it may stay.
    drift_ = now_.besides - uses_.besides_before(now_.op);
    for (const std::int32_t op : rest_.ops)
      if (op >= now_.op) least = std::min(least, uses_.besides_during(op) + drift_);
    static_ = std::max(Bytes(0), least);
  }

  void add(std::int32_t op, bool done) {
    remat::OpSpec spec;
    spec.time = std::llround(host_.rerun_time(op).value() * 1e9);
    spec.first_time = std::llround(host_.first_time(op).value() * 1e9);
    spec.recomputable = uses_.can_rerun(op) && (!done || can_run(op));
    if (!done || spec.recomputable) {
      for (const std::int32_t tensor : uses_.read_by(op))
        spec.inputs.push_back(graph_id_[static_cast<std::size_t>(tensor)]);
    }
    Bytes made;
    for (const std::int32_t tensor : uses_.made_by(op)) {
      if (done && wanted(tensor) == 0) continue;
      graph_id_[static_cast<std::size_t>(tensor)] =
          static_cast<remat::TensorId>(rest_.tensors.size());
      if (done && !now_.is_here(tensor))
        gone_.push_back(static_cast<remat::TensorId>(rest_.tensors.size()));
      rest_.tensors.push_back(tensor);
      spec.out_bytes.push_back(life(tensor).allocation.bytes.value());
      made += life(tensor).allocation.bytes;
    }
    const Bytes besides =
        done ? host_.taken_by(op) - made : uses_.besides_during(op) + drift_ - static_;
    spec.workspace = std::max(Bytes(0), besides).value();
    specs_.push_back(std::move(spec));
  }

  const MemoryHost& host_;
  const TensorLives& lives_;
  const OpUses& uses_;
  const MemoryNow& now_;
  std::vector<char> wanted_;               ///< by tensor: on the device, or made again from it
  std::vector<remat::TensorId> graph_id_;  ///< by tensor
  std::vector<Known> runnable_;            ///< by op
  Bytes static_, drift_;
  std::vector<remat::OpSpec> specs_;
  std::vector<remat::TensorId> gone_;
  RestOfStep rest_;
};

}  // namespace

RestOfStep rest_of_step(const MemoryHost& host, const TensorLives& lives, const OpUses& uses,
                        const MemoryNow& now) {
  return RestBuilder(host, lives, uses, now).run();
}

std::vector<PlanStep> steps_of(const RestOfStep& rest, const remat::Schedule& schedule) {
  std::vector<PlanStep> steps;
  remat::OpId next = 0;
  for (const remat::Step& step : schedule) {
    const auto id = static_cast<std::size_t>(step.id);
    if (step.action != remat::Action::compute) {
      steps.push_back({.action = step.action, .id = rest.tensors[id]});
      continue;
    }
    const bool again = step.id < next;
    if (!again) ++next;
    if (again || step.id >= rest.graph.done())
      steps.push_back({.again = again, .id = rest.ops[id]});
  }
  return steps;
}

}  // namespace tessera

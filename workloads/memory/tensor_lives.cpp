#include "workloads/memory/tensor_lives.h"

#include <unordered_map>

namespace tessera {
namespace {

class LifeCollector final : public MemoryVisitor {
 public:
  void step(const MemoryStep& step) override {
    if (step.allocation.block < 0) return;
    if (step.allocates) {
      position_[step.allocation.id] = lives_.size();
      lives_.push_back({step.allocation, {}});
    }
    use(step.op, step.allocation, step.allocates);
  }
  void use(std::int32_t op, const Allocation& allocation, bool writes) override {
    const auto known = position_.find(allocation.id);
    if (known == position_.end()) return;
    std::vector<std::int32_t>& users = lives_[known->second].users;
    if (users.empty() || users.back() != op) users.push_back(op);
    if (writes) lives_[known->second].last_writer = op;
  }
  std::vector<TensorLife> take() { return std::move(lives_); }

 private:
  std::vector<TensorLife> lives_;
  std::unordered_map<std::int64_t, std::size_t> position_;  ///< by allocation
};

}  // namespace

TensorLives::TensorLives(const Program& program, int stage) {
  LifeCollector collector;
  replay_memory(program, stage, collector);
  lives_ = collector.take();
  const std::size_t ops = program.stages[static_cast<std::size_t>(stage)].ops.size();
  first_of_op_.assign(ops + 1, 0);
  for (const TensorLife& life : lives_)
    for (const std::int32_t op : life.users) ++first_of_op_[static_cast<std::size_t>(op) + 1];
  for (std::size_t op = 0; op < ops; ++op) first_of_op_[op + 1] += first_of_op_[op];
  of_ops_.resize(first_of_op_.back());
  std::vector<std::size_t> next = first_of_op_;
  for (std::size_t i = 0; i < lives_.size(); ++i)
    for (const std::int32_t op : lives_[i].users)
      of_ops_[next[static_cast<std::size_t>(op)]++] = static_cast<std::int32_t>(i);
}

}  // namespace tessera

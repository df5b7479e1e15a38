#include <algorithm>
#include <deque>

#include "workloads/schedules/schedule.h"

namespace tessera {
namespace {

/// One stage's order. `near` is the direction whose end of the pipeline the stage is in the first
/// half of, `far` the other: the first half of the stages runs what the second half does, mirrored.
class DualPipeOrder {
 public:
  DualPipeOrder(int stage, int stages, int micro_batches)
      : stages_(stages),
        half_(micro_batches / 2),
        rank_(std::min(stage, stages - 1 - stage)),
        near_(stage < stages / 2 ? 0 : 1) {}

  std::vector<ScheduledPass> run() &&;

 private:
  void forward(int chunk) {
    passes_.push_back({PassDirection::forward, next(forwards_, chunk), chunk});
  }
  void backward(int chunk) {
    passes_.push_back({PassDirection::backward, next(backwards_, chunk), chunk});
  }
  void input_gradient(int chunk) {
    const int micro_batch = next(backwards_, chunk);
    passes_.push_back({PassDirection::input_gradient, micro_batch, chunk});
    kept_.push_back({PassDirection::weight_gradient, micro_batch, chunk});
  }
  void weight_gradient() {
    passes_.push_back(kept_.front());
    kept_.pop_front();
  }
  int next(int (&done)[2], int chunk) const { return chunk * half_ + done[chunk]++; }
  void drain(int pairs);

  int stages_;
  int half_;  ///< micro-batches per direction
  int rank_;  ///< stages between this one and the nearer end
  int near_;  ///< chunk
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  std::vector<ScheduledPass> passes_;
  std::deque<ScheduledPass> kept_;
};

/// Backward passes of both directions; weight gradients are kept from the middle on.
void DualPipeOrder::drain(int pairs) {
  const int far = 1 - near_;
  bool keeps = false;
  for (int i = 0; i < pairs; ++i) {
    keeps = keeps || (i == pairs / 2 && rank_ % 2 == 1);
    keeps ? input_gradient(far) : backward(far);
    keeps = keeps || (i == pairs / 2 && rank_ % 2 == 0);
    keeps ? input_gradient(near_) : backward(near_);
  }
}

std::vector<ScheduledPass> DualPipeOrder::run() && {
  const int far = 1 - near_;
  const int inner = stages_ / 2 - rank_ - 1;  // stages between this one and the middle
  for (int i = 0; i < 2 * inner; ++i) forward(near_);
  for (int i = 0; i < rank_ + 1; ++i) {
    forward(near_);
    forward(far);
  }
  for (int i = 0; i < inner; ++i) {
    input_gradient(far);
    weight_gradient();
    forward(far);
  }
  for (int i = 0; i < half_ - stages_ + rank_ + 1; ++i) {
    forward(near_);
    backward(far);
    forward(far);
    backward(near_);
  }
  for (int i = 0; i < inner; ++i) {
    backward(far);
    forward(far);
    backward(near_);
  }
  drain(rank_ + 1);
  for (int i = 0; i < inner; ++i) {
    weight_gradient();
    input_gradient(near_);
  }
  while (!kept_.empty()) weight_gradient();
  return std::move(passes_);
}

}  // namespace

std::vector<ScheduledPass> dual_pipe(int stage, int stages, int micro_batches) {
  return DualPipeOrder(stage, stages, micro_batches).run();
}

}  // namespace tessera

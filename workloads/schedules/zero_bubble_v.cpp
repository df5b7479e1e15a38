#include <algorithm>
#include <array>
#include <utility>

#include "workloads/schedules/schedule.h"

namespace tessera {
namespace {

/// One stage's order, for as many micro-batches as fill the pipeline at least; passes of those that
/// there are not fall out.
class ZeroBubbleV {
 public:
  ZeroBubbleV(int stage, int stages, int micro_batches)
      : stage_(stage),
        stages_(stages),
        micro_batches_(micro_batches),
        filling_(std::max(2 * stages - 1, micro_batches)) {}

  std::vector<ScheduledPass> run() && {
    warm_up();
    while (forwards_[1] < forwards_[0] || forwards_[0] < filling_) {
      if (forwards_[0] < filling_) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    cool_down();
    return std::move(passes_);
  }

 private:
  void add(PassDirection direction, int micro_batch, int chunk) {
    if (micro_batch < micro_batches_) passes_.push_back({direction, micro_batch, chunk});
  }
  void forward(std::size_t chunk) {
    add(PassDirection::forward, forwards_[chunk]++, static_cast<int>(chunk));
  }
  void input_gradient(std::size_t chunk) {
    add(PassDirection::input_gradient, backwards_[chunk]++, static_cast<int>(chunk));
  }
  void weight_gradient(std::size_t chunk) {
    add(PassDirection::weight_gradient, weights_[chunk]++, static_cast<int>(chunk));
  }
  void backward(std::size_t chunk) {
    input_gradient(chunk);
    weight_gradient(chunk);
  }

  void warm_up() {
    for (int i = 0; i < 2 * (stages_ - stage_) - 1; ++i) forward(0);
    for (int i = 0; i < stage_; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < stages_ - stage_; ++i) {
      forward(1);
      backward(1);
    }
  }
  /// Weight gradients fill the time for which the others' input gradients are waited for.
  void cool_down() {
    for (int i = 0; i < stage_; ++i) {
      input_gradient(0);
      input_gradient(1);
    }
    for (int i = 0; i < stages_ - stage_; ++i) {
      input_gradient(0);
      weight_gradient(0);
    }
    while (weights_[1] < backwards_[1]) weight_gradient(1);
    while (weights_[0] < backwards_[0]) weight_gradient(0);
  }

  int stage_, stages_, micro_batches_, filling_;
  std::array<int, 2> forwards_{}, backwards_{}, weights_{};  ///< passes so far, by chunk
  std::vector<ScheduledPass> passes_;
};

}  // namespace

std::vector<ScheduledPass> zero_bubble_v(int stage, int stages, int micro_batches) {
  return ZeroBubbleV(stage, stages, micro_batches).run();
}

}  // namespace tessera

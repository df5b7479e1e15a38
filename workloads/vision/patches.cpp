#include "workloads/vision/patches.h"

#include "workloads/ops/views.h"
#include "workloads/ops/vision/convolution.h"

namespace tessera {

Tensor patch_embedding(Tape& tape, const Tensor& images, std::int64_t hidden, std::int32_t side) {
  const Tensor x = conv2d(tape, "patches", images,
                          {.out_channels = hidden, .window = side, .stride = side, .bias = true});
  const Tensor flat = view(tape, x, {x.sizes()[0], hidden, x.sizes()[2] * x.sizes()[3]});
  return permute(tape, flat, {0, 2, 1});
}

Tensor prepend_class_token(Tape& tape, const Tensor& patches) {
  const std::int64_t b = patches.sizes()[0], hidden = patches.sizes()[2];
  const Tensor token = tape.parameter("class_token", {1, 1, hidden});
  const Tensor repeated = expand(tape, "class_token.expand", token, {b, 1, hidden});
  return concatenate(tape, "class_token.cat", {repeated, patches}, 1);
}

}  // namespace tessera

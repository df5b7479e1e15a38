#include "app/search/hidden_collectives.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tessera {

void HiddenCollectives::add_collective(StreamKind stream, Seconds alone, const DeviceLoad& load) {
  std::vector<Collectives>& all = streams_[static_cast<std::size_t>(stream)];
  auto like = std::ranges::find(all, load, &Collectives::load);
  if (like == all.end()) like = all.insert(all.end(), {load, Seconds(0)});
  like->alone += alone;
}

void HiddenCollectives::add_kernels(const TimedSegment& segment) {
  products_ += segment.duration * segment.product_share;
  others_ += segment.duration * (1 - segment.product_share);
}

HiddenCollectives::Stretch HiddenCollectives::stretch_of(const DeviceLoad& load) {
  return {KernelsBeside(load, 1).stretch(), KernelsBeside(load, 0).stretch()};
}

/// What kernels lose to collectives that run beside them for so long; what all of them together
/// cannot hide comes on top.
Seconds HiddenCollectives::delay(Seconds beside, const Stretch& stretch) const {
  std::array<std::pair<double, Seconds>, 2> kernels = {
      {{stretch.products, products_}, {stretch.others, others_}}};
  std::ranges::sort(kernels);
  Seconds lost;
  for (const auto& [slower, alone] : kernels) {
    const Seconds hidden = std::min(beside, alone * slower);
    lost += hidden * (1 - 1 / slower);
    beside -= hidden;
  }
  return lost + beside;
}

/// Some of the collectives cost what all of them do or less: those that stretch the most are taken,
/// as many as it pays to.
Seconds HiddenCollectives::delay_of(std::vector<Collectives> stream, Seconds elsewhere) const {
  std::ranges::sort(stream, std::greater<>(),
                    [](const Collectives& all) { return stretch_of(all.load).products; });
  Seconds most, together;
  Stretch least;
  for (const Collectives& next : stream) {
    const Stretch own = stretch_of(next.load);
    const bool first = together == Seconds(0);
    least.products = first ? own.products : std::min(least.products, own.products);
    least.others = first ? own.others : std::min(least.others, own.others);
    together += next.alone;
    if (together > elsewhere) most = std::max(most, delay(together - elsewhere, least));
  }
  return most;
}

Seconds HiddenCollectives::least_delay(Seconds elsewhere) const {
  Seconds most;
  for (const std::vector<Collectives>& stream : streams_)
    most = std::max(most, delay_of(stream, elsewhere));
  return most;
}

}  // namespace tessera

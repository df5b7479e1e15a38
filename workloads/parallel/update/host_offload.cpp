#include "workloads/parallel/update/host_offload.h"

#include <algorithm>

namespace tessera {

HostOffload::HostOffload(PassLibrary& library, OpQueue& queue) : library_(library), queue_(queue) {
  const ModelGraph& graph = library.graph();
  std::vector<int> layers;
  for (int position = 0; position < std::ssize(graph.order); ++position) {
    if (graph.layer_numbers[static_cast<std::size_t>(position)] == kNoLayer) continue;
    layers.push_back(position);
    if (graph.at(position).waits_on_host) waiting_.push_back(position);
  }
  const std::size_t count = waiting_.size();
  for (std::size_t group = 0; group < count; ++group)
    end_of_window_[waiting_[group]] = layers[layers.size() * (group + 1) / count - 1];
}

std::int32_t HostOffload::copy(OpKind kind, const Place& place) {
  const bool out = kind == OpKind::copy_out;
  ProgramOp op;
  op.kind = kind;
  op.stream = out ? StreamKind::device_to_host : StreamKind::host_to_device;
  op.phase = out ? Phase::forward : Phase::backward;
  op.waits = {queue_.last_kernels(), out ? -1 : done_.at(place)};
  op.moves_saved = true;
  op.bytes = library_.graph().at(place.first).saved;
  op.micro_batch = place.second;
  op.layer = library_.graph().layer_numbers[static_cast<std::size_t>(place.first)];
  (out ? op.freed : op.allocated) = op.bytes;
  return queue_.add(op);
}

void HostOffload::settle(std::map<Place, std::int32_t>& ops, const Place& place) {
  const auto found = ops.find(place);
  if (found == ops.end()) return;
  queue_.await(found->second, library_.empty_segment());
  ops.erase(found);
}

void HostOffload::before(int position, const ScheduledPass& pass) {
  if (waiting_.empty()) return;
  const bool forward = is_forward(pass);
  for (const int waiting : waiting_) {
    const Place place{waiting, pass.micro_batch};
    const int end = end_of_window_.at(waiting);
    if (forward && position == end + 1) settle(out_, place);
    if (!forward && position == end) in_[place] = copy(OpKind::copy_in, place);
  }
  if (forward || !std::ranges::binary_search(waiting_, position)) return;
  settle(in_, {position, pass.micro_batch});
  done_.erase({position, pass.micro_batch});
}

void HostOffload::after(int position, const ScheduledPass& pass) {
  if (!is_forward(pass) || !std::ranges::binary_search(waiting_, position)) return;
  const Place place{position, pass.micro_batch};
  out_[place] = done_[place] = copy(OpKind::copy_out, place);
}

}  // namespace tessera

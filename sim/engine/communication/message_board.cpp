#include "sim/engine/communication/message_board.h"

#include <utility>

namespace tessera {

MessageKey MessageBoard::folded(MessageKey key) const {
  const RankFolding& folding = plan_.folding().ranks;
  return {folding.of(key.from_rank), folding.of(key.to_rank), key.tag};
}

void MessageBoard::send(const PlannedTransfer& message, int tag, Action on_sent) {
  const MessageKey key = folded({message.from, message.to, tag});
  transfers_.start(message.transfer, [this, key, on_sent = std::move(on_sent)]() mutable {
    deliver(key);
    on_sent();
  });
}

void MessageBoard::deliver(MessageKey key) {
  Message& message = messages_[key];
  message.arrived = true;
  if (!message.on_arrival) return;
  Action on_arrival = std::move(message.on_arrival);
  messages_.erase(key);
  on_arrival();
}

void MessageBoard::receive(MessageKey unfolded_key, Action on_arrival) {
  const MessageKey key = folded(unfolded_key);
  Message& message = messages_[key];
  if (!message.arrived) {
    message.on_arrival = std::move(on_arrival);
    return;
  }
  messages_.erase(key);
  clock_.after(Seconds(0), std::move(on_arrival));
}

std::vector<std::string> MessageBoard::unreceived() const {
  std::vector<std::string> lines;
  for (const auto& [key, message] : messages_) {
    if (!message.arrived) continue;
    lines.push_back("message " + std::to_string(key.tag) + " from gpu " +
                    std::to_string(key.from_rank) + " to gpu " + std::to_string(key.to_rank) +
                    " was never received");
  }
  return lines;
}

}  // namespace tessera

#include "sim/engine/message_board.h"

#include <utility>

namespace tessera {

void MessageBoard::send(MessageKey key, Bytes bytes, Action on_sent) {
  transfers_.start(plan_.message(key.from_rank, key.to_rank, bytes),
                   [this, key, on_sent = std::move(on_sent)] {
                     deliver(key);
                     on_sent();
                   });
}

void MessageBoard::deliver(MessageKey key) {
  Message& message = messages_[key];
  message.arrived = true;
  if (!message.on_arrival) return;
  const Action on_arrival = std::move(message.on_arrival);
  messages_.erase(key);
  on_arrival();
}

void MessageBoard::receive(MessageKey key, Action on_arrival) {
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

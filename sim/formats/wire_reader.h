#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace tessera {

/// Bytes that are no Protobuf message.
class WireDamage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One field of a message in Protobuf's wire format.
struct WireField {
  int number = 0;
  bool is_bytes = false;    ///< text, bytes, message or packed list
  std::uint64_t value = 0;  ///< of the others; floating-point ones as their bits
  std::string_view bytes;

  bool is(int wanted, bool wanted_bytes) const {
    return number == wanted && is_bytes == wanted_bytes;
  }
};

/// Reads a message field by field, the other way round than WireMessage. Refers to the bytes.
/// Source: Protocol Buffers documentation, "Encoding".
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  /// All throw WireDamage where the bytes end too early or no field can look so.
  WireField field();
  std::uint64_t varint();
  /// The message behind its length, as streams of messages are stored.
  std::string_view delimited();

 private:
  std::uint64_t fixed(std::size_t size);
  std::string_view take(std::uint64_t size);

  std::string_view rest_;
};

}  // namespace tessera

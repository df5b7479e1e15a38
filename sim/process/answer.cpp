#include "sim/process/answer.h"

namespace tessera {
namespace {

template <class Json>
std::string bytes_of(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

}  // namespace

std::string cbor_of(const nlohmann::json& json) {
  return bytes_of(json);
}
std::string cbor_of(const nlohmann::ordered_json& json) {
  return bytes_of(json);
}

void read_cbor(const std::string& bytes, nlohmann::json& json) {
  json = nlohmann::json::from_cbor(bytes);
}
void read_cbor(const std::string& bytes, nlohmann::ordered_json& json) {
  json = nlohmann::ordered_json::from_cbor(bytes);
}

}  // namespace tessera

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera::remat {

/// An object of a JSON file that knows where it lies, so that complaints can name it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string file, std::string path);

  bool has(const char* field) const { return object_.contains(field); }
  std::int64_t integer(const char* field) const;
  double number(const char* field) const;
  bool flag(const char* field) const;  ///< false where absent
  std::string text(const char* field) const;
  std::vector<std::string> texts(const char* field) const;
  std::vector<std::int64_t> integers(const char* field) const;
  std::vector<double> numbers(const char* field) const;
  std::vector<std::vector<std::int64_t>> integer_lists(const char* field) const;
  std::vector<JsonFields> objects(const char* field) const;
  [[noreturn]] void refuse(const std::string& field, const std::string& what,
                           const std::string& hint) const;

 private:
  const nlohmann::json& field(const char* field) const;
  std::int64_t as_integer(const nlohmann::json& value, const std::string& where) const;
  double as_number(const nlohmann::json& value, const std::string& where) const;

  const nlohmann::json& object_;
  std::string file_, path_;
};

}  // namespace tessera::remat

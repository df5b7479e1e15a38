#include "sim/config/fields/explain.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST(Explain, AFieldHasMeaningTypeRangeDefaultAndSpellings) {
  EXPECT_EQ(explain("parallelism.tensor"),
            "parallelism.tensor\n"
            "  meaning: ranks that share each layer; divides heads, kv_heads and ffn\n"
            "  type: whole number\n"
            "  range: 1 to 100000\n"
            "  default: 1\n"
            "  also written as: tp, tensor_parallel\n");
}

TEST(Explain, AnEnumListsItsValues) {
  EXPECT_THAT(explain("training.schedule"),
              HasSubstr("one_f_one_b (or 1f1b): one forward, one backward"));
}

TEST(Explain, AQuantityListsItsUnits) {
  EXPECT_THAT(explain("cluster.node.gpu.memory"), HasSubstr("GiB"));
}

TEST(Explain, AliasesLeadToTheField) {
  EXPECT_EQ(explain("parallelism.tp"), explain("parallelism.tensor"));
}

TEST(Explain, TheEmptyPathIsTheScenario) {
  EXPECT_THAT(explain(""), HasSubstr("cluster (required): where it runs"));
}

TEST(Explain, AnUnknownPathIsAnErrorWithASuggestion) {
  try {
    explain("parallelism.tensr");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "no field tensr of parallelism; did you mean tensor?");
  }
  EXPECT_THROW(explain("name.first"), InputError);
  EXPECT_THROW(explain("training."), InputError);
}

/// Every documentation text of the schema below `section`, by path.
void expect_documented(const std::string& path, const Json& definition, const Json& definitions) {
  EXPECT_FALSE(definition.value("description", "").empty()) << path;
  for (const auto& [name, property] : definition.at("properties").items()) {
    EXPECT_FALSE(property.value("description", "").empty()) << path << "." << name;
    const Json item = property.value("items", property);
    if (!item.contains("$ref")) continue;
    const std::string reference = item.at("$ref");
    const std::string type = reference.substr(std::string("#/$defs/").size());
    expect_documented(path + "." + name, definitions.at(type), definitions);
  }
}

TEST(JsonSchema, DocumentsEveryFieldAndResolvesEveryReference) {
  const Json schema = Json::parse(json_schema());
  EXPECT_EQ(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  for (const auto& [name, definition] : schema.at("$defs").items()) {
    expect_documented(name, definition, schema.at("$defs"));
  }
}

TEST(JsonSchema, CarriesRangesDefaultsAndEnumValues) {
  const Json schema = Json::parse(json_schema());
  const Json& tensor = schema["$defs"]["Parallelism"]["properties"]["tensor"];
  EXPECT_EQ(tensor["minimum"], 1);
  EXPECT_EQ(tensor["default"], 1);
  const Json& schedule = schema["$defs"]["Training"]["properties"]["schedule"];
  EXPECT_EQ(
      schedule["enum"],
      Json::parse(
          R"(["gpipe", "one_f_one_b", "1f1b", "interleaved_1f1b", "interleaved", "zb_h1", "zero_bubble", "zb_h2", "dualpipe", "zbv"])"));
  EXPECT_EQ(schedule["default"], "one_f_one_b");
}

TEST(JsonSchema, RefusesUnknownFieldsAndRequiresWhatTheBinderRequires) {
  const Json training = Json::parse(json_schema())["$defs"]["Training"];
  EXPECT_EQ(training["additionalProperties"], false);
  // sequence_length depends on the model: no condition of this section can say so
  EXPECT_EQ(training["allOf"][0]["anyOf"][0]["required"][0], "global_batch");
  EXPECT_EQ(training["allOf"][0]["anyOf"][1]["required"][0], "global_batch_size");
}

}  // namespace
}  // namespace tessera

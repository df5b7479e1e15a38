// Every field of the schema, alone and in pairs: what a scenario says is in its resolved form and
// in the bytes that sweeps know it by. A field that got lost would give two scenarios one result.
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "configs/schema/scenario.pb.h"
#include "sim/config/fields/bind.h"
#include "sim/config/fields/convert.h"
#include "sim/config/fields/schema_rules.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"
#include "tests/sim/config/config_fixture.h"

namespace tessera {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

/// Fields that do not change the key, each with the reason.
const std::map<std::string, std::string> kNotInTheKey = {
    {"name", "the title of reports; no figure depends on it"},
    {"approximations", "said in reports; no figure depends on them"},
    {"training.micro_batches", "is resolved as training.micro_batch, which it stands for"},
};

/// Fields that only transformers have: an image model that gives one is the same without it, or is
/// refused (hidden, heads).
const std::set<std::string> kOnlyTransformers = {
    "model.activation",      "model.hidden_dropout", "model.attention_dropout",
    "model.tied_embeddings", "model.qk_norm",        "model.qkv_bias",
    "model.hidden",          "model.heads",          "model.window",
    "model.full_every",      "model.full_first",     "model.attention_sinks",
    "model.window_kv_heads", "model.window_sinks",   "model.attention_softcap",
    "model.logit_softcap",   "model.kv_rank",        "model.q_rank",
    "model.rope_dim",        "model.v_head_dim",     "model.expert_ffn",
    "model.shared_ffn",      "model.shared_gate",    "model.dense_layers",
    "model.router_groups",   "model.router_sigmoid", "model.router_bias",
    "model.expert_bias",     "model.norm",           "model.norm_placement",
    "model.block_order",     "model.qk_norm_wide",   "model.output_bias",
    "model.mlp_bias",        "model.head_bias",      "model.embedding_scale",
    "model.residual_scale",  "model.logit_scale",    "model.mtp_layers"};
/// Fields that only image models have; check_scenario refuses them elsewhere.
const std::set<std::string> kOnlyImages = {"model.architecture"};

/// A field of the schema, by the sections around it; of a list its first item is meant.
struct FieldPlace {
  std::vector<const Field*> fields;

  std::string path() const {
    std::string text;
    for (const Field* field : fields) text += (text.empty() ? "" : ".") + field->name();
    return text;
  }
};

void collect(const pb::Descriptor& type, FieldPlace place, std::vector<FieldPlace>& found) {
  for (int i = 0; i < type.field_count(); ++i) {
    FieldPlace next = place;
    next.fields.push_back(type.field(i));
    if (type.field(i)->cpp_type() == Field::CPPTYPE_MESSAGE) {
      collect(*type.field(i)->message_type(), next, found);
    } else {
      found.push_back(next);
    }
  }
}

std::vector<FieldPlace> every_field() {
  std::vector<FieldPlace> found;
  collect(*schema::Scenario::descriptor(), {}, found);
  return found;
}

/// The message that holds the last field of `place`, made where there is none.
pb::Message& holder_of(pb::Message& root, const FieldPlace& place) {
  pb::Message* at = &root;
  for (std::size_t i = 0; i + 1 < place.fields.size(); ++i) {
    const Field* field = place.fields[i];
    const pb::Reflection& reflection = *at->GetReflection();
    if (!field->is_repeated()) {
      at = reflection.MutableMessage(at, field);
    } else if (reflection.FieldSize(*at, field) == 0) {
      at = reflection.AddMessage(at, field);
    } else {
      at = reflection.MutableRepeatedMessage(at, field, 0);
    }
  }
  return *at;
}

/// The value as text, or none of an empty list; a field that is not set has its default.
std::optional<std::string> text_at(const pb::Message& root, const FieldPlace& place) {
  const std::unique_ptr<pb::Message> copy(root.New());
  copy->CopyFrom(root);
  pb::Message& holder = holder_of(*copy, place);
  const Field& field = *place.fields.back();
  const pb::Reflection& reflection = *holder.GetReflection();
  if (field.is_repeated() && reflection.FieldSize(holder, &field) == 0) return std::nullopt;
  std::string text;
  pb::TextFormat::PrintFieldValueToString(holder, &field, field.is_repeated() ? 0 : -1, &text);
  return text;
}

/// Numbers that may be in the range of a field, from its ends and between; doubles are odd ones, so
/// that a text with few digits would lose some.
std::vector<double> numbers_for(const Field& field) {
  const bool whole = field.cpp_type() != Field::CPPTYPE_DOUBLE;
  const schema::FieldRules& rules = rules_of(field);
  std::vector<double> numbers;
  for (const double value : {rules.min(), rules.max(), 2.0, 3.0, 48.0, 0.123456789012345, 0.5,
                             1.0 / 3, 1.0625, 12345678901.0, 1e12 / 7}) {
    if (in_range(value, field) && (!whole || value == static_cast<double>(std::int64_t(value))) &&
        (field.cpp_type() != Field::CPPTYPE_INT32 || value < 2e9))
      numbers.push_back(value);
  }
  return numbers;
}

void set_number(pb::Message& holder, const Field& field, double value) {
  const pb::Reflection& reflection = *holder.GetReflection();
  if (field.is_repeated()) {
    reflection.ClearField(&holder, &field);
    return reflection.AddInt32(&holder, &field, static_cast<int>(value));
  }
  if (field.cpp_type() == Field::CPPTYPE_INT32)
    return reflection.SetInt32(&holder, &field, static_cast<int>(value));
  if (field.cpp_type() == Field::CPPTYPE_INT64)
    return reflection.SetInt64(&holder, &field, static_cast<std::int64_t>(value));
  reflection.SetDouble(&holder, &field, value);
}

void set_text(pb::Message& holder, const Field& field, std::size_t choice) {
  const std::vector<std::string> texts = {"tp-cp-ep-pp-dp", "tp-pp-cp-ep-dp"};
  const std::string text =
      field.name() == "order" ? texts[choice % 2] : "a: \"text\" #" + std::to_string(choice % 2);
  const pb::Reflection& reflection = *holder.GetReflection();
  if (!field.is_repeated()) return reflection.SetString(&holder, &field, text);
  reflection.ClearField(&holder, &field);
  reflection.AddString(&holder, &field, text);
}

/// Another GPU than the cluster's is known by its id; without one the rest of it means nothing.
void name_other_gpu(schema::Scenario& message) {
  schema::GpuPerturbation& gpus = message.perturbation().gpus().empty()
                                      ? *message.mutable_perturbation()->add_gpus()
                                      : *message.mutable_perturbation()->mutable_gpus(0);
  if (gpus.gpu().id().empty()) gpus.mutable_gpu()->set_id("other");
}

/// What a long run meets is no part of a step.
bool is_not_in_the_key(const FieldPlace& place) {
  return kNotInTheKey.contains(place.path()) || place.path().starts_with("reliability.");
}

bool is_of_other_gpu(const FieldPlace& place) {
  return place.path().starts_with("perturbation.gpus.gpu.");
}

/// Gives the field the value number `choice` of those that it can have.
void set_value(pb::Message& root, const FieldPlace& place, std::size_t choice) {
  const Field& field = *place.fields.back();
  pb::Message& holder = holder_of(root, place);
  const pb::Reflection& reflection = *holder.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_BOOL:
      return reflection.SetBool(&holder, &field, choice % 2 == 0);
    case Field::CPPTYPE_STRING:
      return set_text(holder, field, choice);
    case Field::CPPTYPE_ENUM: {
      const auto count = static_cast<std::size_t>(field.enum_type()->value_count());
      return reflection.SetEnum(&holder, &field,
                                field.enum_type()->value(static_cast<int>(choice % count)));
    }
    default: {
      const std::vector<double> numbers = numbers_for(field);
      set_number(holder, field, numbers.at(choice % numbers.size()));
    }
  }
}

std::size_t choices_of(const Field& field) {
  if (field.cpp_type() == Field::CPPTYPE_ENUM)
    return static_cast<std::size_t>(field.enum_type()->value_count());
  if (field.cpp_type() == Field::CPPTYPE_BOOL || field.cpp_type() == Field::CPPTYPE_STRING)
    return 2;
  return numbers_for(field).size();
}

/// What --resolved writes, read again. That items of lists lack what they need is not its matter.
schema::Scenario written_and_read(const Scenario& scenario) {
  const YamlNode tree = parse_yaml(resolved_yaml(scenario),
                                   std::make_shared<Origin>(Origin{"resolved.yaml", "", true}));
  schema::Scenario message;
  ProblemList ignored;
  bind(tree, message, ignored);
  return message;
}

class EveryField : public ConfigTest {
 protected:
  schema::Scenario base_of(const std::string& id) const {
    return to_message(load("configs/scenarios/" + id + ".yaml"));
  }
  schema::Scenario transformer() const { return base_of("gpt2-large_4xh100_dp4"); }
  schema::Scenario images() const { return base_of("resnet-50_8xv100_dp8"); }

  /// Whether the places' values reach the resolved form; `changed` holds them.
  static void expect_survival(const schema::Scenario& changed,
                              const std::vector<FieldPlace>& places) {
    const Scenario scenario = to_scenario(changed);
    const schema::Scenario again = written_and_read(scenario);
    for (const FieldPlace& place : places) {
      if (place.path() == "training.micro_batches") continue;
      EXPECT_EQ(text_at(again, place), text_at(changed, place)) << place.path();
    }
    EXPECT_TRUE(identifying_bytes(to_scenario(again)) == identifying_bytes(scenario))
        << places.front().path() << " " << places.back().path();
  }
};

std::string bytes_of(const schema::Scenario& message) {
  return identifying_bytes(to_scenario(message));
}

/// Every value of every field that `left_out` does not name.
void for_each_change(const schema::Scenario& base, const std::set<std::string>& left_out,
                     const std::function<void(const FieldPlace&, const schema::Scenario& before,
                                              const schema::Scenario& changed)>& visit) {
  for (const FieldPlace& place : every_field()) {
    if (left_out.contains(place.path())) continue;
    schema::Scenario before = base;
    if (is_of_other_gpu(place)) name_other_gpu(before);
    for (std::size_t choice = 0; choice < choices_of(*place.fields.back()); ++choice) {
      schema::Scenario changed = before;
      set_value(changed, place, choice);
      visit(place, before, changed);
    }
  }
}

TEST_F(EveryField, AloneSurvivesInTheResolvedScenario) {
  for_each_change(transformer(), kOnlyImages,
                  [](const FieldPlace& place, const auto&, const schema::Scenario& changed) {
                    if (changed.model().family() != schema::Model::vision)
                      expect_survival(changed, {place});
                  });
  for_each_change(images(), kOnlyTransformers,
                  [](const FieldPlace& place, const auto&, const schema::Scenario& changed) {
                    if (changed.model().family() == schema::Model::vision)
                      expect_survival(changed, {place});
                  });
}

TEST_F(EveryField, AloneChangesTheKeyOrIsNamedHere) {
  const schema::Scenario base = transformer();
  std::set<std::string> changing;
  for_each_change(base, kOnlyImages,
                  [&](const FieldPlace& place, const schema::Scenario& before,
                      const schema::Scenario& changed) {
                    const bool differs = text_at(changed, place) != text_at(before, place);
                    const bool same = bytes_of(changed) == bytes_of(before);
                    if (differs && !is_not_in_the_key(place)) {
                      EXPECT_FALSE(same) << place.path() << ": " << *text_at(changed, place);
                    }
                    if (!same) changing.insert(place.path());
                  });
  for (const FieldPlace& place : every_field()) {
    const std::string path = place.path();
    const bool named = is_not_in_the_key(place) || kOnlyImages.contains(path);
    EXPECT_NE(changing.contains(path), named) << path;
  }
}

TEST_F(EveryField, RandomPairsSurviveAndHaveKeysOfTheirOwn) {
  const std::vector<FieldPlace> places = every_field();
  const schema::Scenario base = transformer();
  std::mt19937_64 random(20);
  for (int i = 0; i < 1500; ++i) {
    const FieldPlace& first = places[random() % places.size()];
    const FieldPlace& second = places[random() % places.size()];
    schema::Scenario before = base;
    if (is_of_other_gpu(first) || is_of_other_gpu(second)) name_other_gpu(before);
    schema::Scenario one = before, other = before, both = before;
    const std::size_t first_choice = random(), second_choice = random();
    set_value(one, first, first_choice);
    set_value(other, second, second_choice);
    set_value(both, first, first_choice);
    set_value(both, second, second_choice);
    const auto left_out = [&](const FieldPlace& place) {
      return kOnlyImages.contains(place.path()) || is_not_in_the_key(place);
    };
    const bool same = first.path() == second.path() || left_out(first) || left_out(second);
    if (same || both.model().family() == schema::Model::vision) continue;
    expect_survival(both, {first, second});
    if (text_at(both, second) != text_at(one, second)) {
      EXPECT_TRUE(bytes_of(both) != bytes_of(one)) << second.path() << " beside " << first.path();
    }
    if (text_at(both, first) != text_at(other, first)) {
      EXPECT_TRUE(bytes_of(both) != bytes_of(other)) << first.path() << " beside " << second.path();
    }
  }
}

TEST_F(EveryField, MicroBatchesAreResolvedAsMicroBatch) {
  schema::Scenario message = transformer();
  message.mutable_training()->clear_micro_batch();
  message.mutable_training()->set_micro_batches(1);
  const std::string one = identifying_bytes(to_scenario(message));
  message.mutable_training()->set_micro_batches(2);
  EXPECT_NE(identifying_bytes(to_scenario(message)), one);
}

}  // namespace
}  // namespace tessera

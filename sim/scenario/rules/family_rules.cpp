// Which families read which dimensions of a model: one that nobody reads would be ignored.
#include <initializer_list>
#include <string>

#include "sim/scenario/rules/counts.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

using enum ModelFamily;

/// A field and who reads it; 0: not given. Fields of family llama alone are in model_rules.cpp.
struct FamilyField {
  Count count;
  std::initializer_list<ModelFamily> readers;
  const char* of;    ///< the readers, in words
  const char* hint;  ///< besides leaving it out; may be empty
};

bool reads(const FamilyField& field, ModelFamily family) {
  for (const ModelFamily reader : field.readers)
    if (reader == family) return true;
  return false;
}

void refuse(const Count& count, const std::string& what, const std::string& hint,
            std::vector<Problem>& problems) {
  problems.push_back({count.path, count.text() + what, hint, {"model.family"}});
}

/// Counts of experts' fields without experts, and key-value heads where all heads have their own.
void check_without_use(const ModelSpec& m, std::vector<Problem>& problems) {
  if (m.experts == 0) {
    const Count counts[] = {{"model.expert_capacity", m.expert_capacity},
                            {"model.moe_every", m.moe_every},
                            {"model.experts_per_token", m.experts_per_token}};
    for (const Count& count : counts)
      if (count.value != 0)
        refuse(count, " in a model without experts", "give model.experts, or leave it out",
               problems);
  }
  const bool whole = m.family == opt || m.family == bert || m.family == switch_transformer;
  if (whole && m.kv_heads != m.heads)
    refuse({"model.kv_heads", m.kv_heads}, ": this family has as many key-value heads as heads",
           "leave it out, or use model.family: llama", problems);
}

}  // namespace

void check_family_fields(const ModelSpec& m, std::vector<Problem>& problems) {
  const bool has_experts = m.experts > 0;  // else check_without_use() has a better word
  const FamilyField fields[] = {
      {{"model.encoder_layers", m.encoder_layers},
       {switch_transformer},
       "switch_transformer (T5)",
       ""},
      {{"model.max_positions", m.max_positions},
       {gpt2, opt, bert, bloom, mpt},  // check_alibi() has words of its own for the last two
       "gpt2, opt and bert, which learn an embedding of every position",
       ": positions are rotary or relative"},
      {{"model.token_types", m.token_types}, {bert}, "bert", ""},
      {{"model.outputs", m.outputs}, {bert}, "bert", ""},
      {{"model.experts", m.experts},
       {gpt2, llama, switch_transformer, bloom, mpt},  // as above
       "gpt2, llama and switch_transformer",
       ""},
      {{"model.expert_capacity", has_experts ? m.expert_capacity : 0},
       {switch_transformer},
       "switch_transformer",
       "; training.expert_capacity_factor is Megatron's"},
      {{"model.moe_every", has_experts ? m.moe_every : 0},
       {switch_transformer},
       "switch_transformer",
       "; family llama has model.expert_pattern"},
      {{"model.experts_per_token", has_experts ? m.experts_per_token : 0},
       {gpt2, llama},
       "gpt2 and llama",
       ": a token goes to one expert"},
  };
  for (const FamilyField& field : fields) {
    if (field.count.value == 0 || reads(field, m.family)) continue;
    refuse(field.count, std::string(" is for models of family ") + field.of,
           std::string("leave it out") + field.hint, problems);
  }
  check_without_use(m, problems);
}

}  // namespace tessera

// config.json of models that are switches of family llama, by their published parameter counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/hugging_face/read_config.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

ModelSpec model_of(const std::string& text, const std::string& where) {
  return read_hugging_face_config(text, where).model;
}

/// A small Llama with more fields.
std::string llama(const std::string& more, const std::string& model_type) {
  return R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100, "model_type": ")" +
         model_type + "\",\n" + more + "}";
}

/// Parameters of the models as they were published.
TEST(HuggingFaceSiblings, ReadsGemma) {
  const ModelSpec gemma2 = model_of(R"({"model_type": "gemma2", "num_hidden_layers": 42,
    "hidden_size": 3584, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
    "intermediate_size": 14336, "vocab_size": 256000, "sliding_window": 4096, "sliding_window_size": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
    "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256})",
                                    "config.json");
  EXPECT_EQ(parameter_count(gemma2), 9'241'705'984);
  EXPECT_EQ(gemma2.full_every, 2);
  EXPECT_TRUE(gemma2.attention_softcap && gemma2.logit_softcap && gemma2.embedding_scale);
  const ModelSpec gemma3 = model_of(R"({"model_type": "gemma3_text", "num_hidden_layers": 26,
    "hidden_size": 1152, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
    "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512,
    "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh"})",
                                    "config.json");
  EXPECT_EQ(parameter_count(gemma3), 999'885'952);
  EXPECT_EQ(gemma3.full_every, 6);
  EXPECT_FALSE(gemma3.attention_softcap);
}

TEST(HuggingFaceSiblings, ReadsModelsWithLayerNorms) {
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "gpt_neox", "num_hidden_layers": 44,
    "hidden_size": 6144, "num_attention_heads": 64, "intermediate_size": 24576,
    "vocab_size": 50432, "rotary_pct": 0.25, "hidden_act": "gelu"})",
                                     "config.json")),
            20'554'567'680);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096,
    "n_head": 16, "n_positions": 2048, "rotary_dim": 64, "vocab_size": 50400,
    "tie_word_embeddings": false})",
                                     "config.json")),
            6'050'882'784);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "falcon", "num_hidden_layers": 32,
    "hidden_size": 4544, "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true,
    "parallel_attn": true, "bias": false, "alibi": false})",
                                     "config.json")),
            6'921'720'704);
  const ModelSpec falcon40 = model_of(R"({"model_type": "falcon", "num_hidden_layers": 60,
    "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024,
    "new_decoder_architecture": true, "bias": false})",
                                      "config.json");
  EXPECT_EQ(falcon40.block_order, BlockOrder::parallel_two_norms);
  EXPECT_EQ(parameter_count(falcon40), 41'303'293'952);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "cohere", "num_hidden_layers": 40,
    "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 64,
    "intermediate_size": 22528, "vocab_size": 256000, "logit_scale": 0.0625})",
                                     "config.json")),
            34'980'831'232);
  const ModelSpec stablelm = model_of(R"({"model_type": "stablelm", "num_hidden_layers": 24,
    "hidden_size": 2048, "num_attention_heads": 32, "intermediate_size": 5632,
    "vocab_size": 100352, "use_qkv_bias": true, "partial_rotary_factor": 0.25})",
                                      "config.json");
  EXPECT_EQ(stablelm.rope_dim, 16);
  EXPECT_EQ(parameter_count(stablelm), 1'644'515'328);  // stablelm-2-1_6b
}

TEST(HuggingFaceSiblings, ReadsDenseSiblingsOfLlama) {
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "phi3", "num_hidden_layers": 40,
    "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 10,
    "intermediate_size": 17920, "vocab_size": 100352})",
                                     "config.json")),
            14'659'507'200);  // phi-4
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "internlm2", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 92544, "bias": false})",
                                     "config.json")),
            7'737'708'544);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "minicpm", "num_hidden_layers": 40,
    "hidden_size": 2304, "num_attention_heads": 36, "intermediate_size": 5760,
    "vocab_size": 122753, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256})",
                                     "config.json")),
            2'724'880'896);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "exaone", "num_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 102400, "activation_function": "silu"})",
                                     "config.json")),
            7'818'448'896);
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "baichuan", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008,
    "vocab_size": 125696, "max_position_embeddings": 4096})",
                                     "config.json")),
            7'505'973'248);  // Baichuan2-7B
  EXPECT_THAT(test::config_error(R"({"model_type": "baichuan", "num_hidden_layers": 40,
    "hidden_size": 5120, "num_attention_heads": 40, "intermediate_size": 13696,
    "vocab_size": 125696, "model_max_length": 4096})"),
              HasSubstr("has ALiBi"));
}

std::string deepseek(const std::string& rank, const std::string& per_token) {
  return R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
    "vocab_size": 129280, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4,
    "scoring_func": "sigmoid", "num_nextn_predict_layers": 1,
    "kv_lora_rank": )" +
         rank + R"(, "num_experts_per_tok": )" + per_token + "}";
}

TEST(HuggingFaceSiblings, ReadsDeepSeek) {
  const ModelSpec model = model_of(deepseek("512", "8"), "config.json");
  EXPECT_EQ(parameter_count(model), 671'026'419'200);
  EXPECT_EQ(model.head_dim, 192);
  EXPECT_EQ(model.shared_ffn, 2048);
  EXPECT_EQ(model.mtp_layers, 1);
  EXPECT_EQ(
      model_of(deepseek("512", "8, \"num_nextn_predict_layers\": 3"), "config.json").mtp_layers, 3);
  EXPECT_THAT(test::config_error(deepseek("512", "8, \"num_nextn_predict_layers\": 17")),
              HasSubstr("num_nextn_predict_layers is 17"));
  EXPECT_THAT(test::config_error(deepseek("0", "8")),
              HasSubstr("config.json:7: kv_lora_rank is 0"));
  EXPECT_THAT(test::config_error(deepseek("512", "300")),
              HasSubstr("exceeds n_routed_experts = 256"));
  EXPECT_THAT(test::config_error(deepseek("512", "8, \"topk_group\": 9")),
              HasSubstr("topk_group = 9 exceeds n_group"));
}

TEST(HuggingFaceSiblings, ReadsGptOss) {
  const std::string text = R"({"model_type": "gpt_oss", "num_hidden_layers": 24,
    "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 2880, "vocab_size": 201088, "num_local_experts": 32,
    "num_experts_per_tok": 4, "attention_bias": true, "swiglu_limit": 7.0,
    "sliding_window": )";
  const ModelSpec model = model_of(text + "128}", "config.json");
  EXPECT_EQ(parameter_count(model), 20'914'757'184);
  EXPECT_EQ(model.window, 128);
  EXPECT_THAT(test::config_error(text + "-1}"), HasSubstr("config.json:5: sliding_window is -1"));
}

TEST(HuggingFaceSiblings, LayerTypesGiveThePatternOfWindows) {
  const auto read = [](const std::string& types) {
    return llama(R"("sliding_window": 64, "layer_types": [)" + types + "]", "olmo3");
  };
  EXPECT_EQ(model_of(read(R"("sliding_attention", "full_attention")"), "c").full_every, 2);
  EXPECT_EQ(model_of(read(R"("full_attention", "full_attention")"), "c").window, 0);
  EXPECT_EQ(model_of(read(R"("sliding_attention", "sliding_attention")"), "c").full_every, 0);
  EXPECT_EQ(model_of(read(R"("full_attention", "sliding_attention")"), "c").attention_pattern,
            "fw");
  EXPECT_THAT(test::config_error(read(R"("full_attention")")),
              HasSubstr("has 1 entries for 2 layers"));
}

}  // namespace
}  // namespace tessera

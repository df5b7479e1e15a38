// Diffusion transformers as diffusers writes them: models/transformers/dit_transformer_2d.py and
// transformer_2d.py, configs of 0.27 (recalled).
#include <array>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

struct PublishedDit {
  VisionArchitecture architecture;
  std::int64_t layers, hidden, heads;
};
constexpr std::array kPublished{PublishedDit{VisionArchitecture::dit_s_2, 12, 384, 6},
                                PublishedDit{VisionArchitecture::dit_b_2, 12, 768, 12},
                                PublishedDit{VisionArchitecture::dit_l_2, 24, 1024, 16},
                                PublishedDit{VisionArchitecture::dit_xl_2, 28, 1152, 16}};

void need(ConfigReader& in, bool holds, const char* key, const std::string& what) {
  if (!holds) in.fail(key, what, "DiT-S/2, B/2, L/2 and XL/2 on latents are simulated");
}

/// What all four have in common.
void check_dit(ConfigReader& in) {
  need(in, in.text_or("norm_type", "ada_norm_zero") == "ada_norm_zero", "norm_type",
       "is not ada_norm_zero: another diffusion model");
  need(in, in.dimension_or("patch_size", 2) == 2, "patch_size", "is not 2");
  need(in, in.dimension_or("in_channels", 4) == 4, "in_channels", "is not 4");
  need(in, in.dimension_or("out_channels", 8) == 8, "out_channels",
       "is not 8: noise and its variance");
  need(in, in.text_or("activation_fn", "gelu-approximate") == "gelu-approximate", "activation_fn",
       "is not gelu-approximate");
  need(in, in.flag_or("attention_bias", true), "attention_bias", "is false");
  need(in, !in.flag_or("norm_elementwise_affine", false), "norm_elementwise_affine", "is true");
  need(in, in.probability_or("dropout", 0.0) == 0, "dropout", "is not 0");
  need(in, !in.has("cross_attention_dim"), "cross_attention_dim",
       "gives attention to a text, which a DiT does not have");
  need(in, !in.has("num_vector_embeds"), "num_vector_embeds", "gives pixels of a code book");
  need(in, in.text_or("attention_type", "default") == "default", "attention_type",
       "is not default");
  for (const char* flag :
       {"double_self_attention", "only_cross_attention", "use_linear_projection"})
    need(in, !in.flag_or(flag, false), flag, "is true");
  need(in, !in.flag_or("upcast_attention", false), "upcast_attention",
       "is true: attention in fp32");
  for (const char* within : {"_class_name", "_diffusers_version", "norm_num_groups", "norm_eps"})
    in.has(within);
}

}  // namespace

void read_dit(ConfigReader& in, ModelSpec& model) {
  check_dit(in);
  const std::int64_t layers = in.dimension_or("num_layers", 28);
  const std::int64_t heads = in.dimension_or("num_attention_heads", 16);
  const std::int64_t hidden = heads * in.dimension_or("attention_head_dim", 72);
  model.family = ModelFamily::vision;
  for (const PublishedDit& one : kPublished)
    if (one.layers == layers && one.heads == heads && one.hidden == hidden)
      model.architecture = one.architecture;
  need(in, model.architecture != VisionArchitecture::none, "num_layers",
       "= " + std::to_string(layers) + " with " + std::to_string(heads) + " heads and a width of " +
           std::to_string(hidden) + " is no DiT of its paper");
  model.image_size = in.dimension_or("sample_size", 32);
  model.classes = in.dimension_or("num_embeds_ada_norm", 1000);
  in.approximate(
      "times and classes are embedded once, as the authors' code does; diffusers' "
      "modules have an embedding of their own in every layer");
}

}  // namespace tessera

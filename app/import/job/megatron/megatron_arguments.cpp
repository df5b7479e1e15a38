// What each argument of megatron/training/arguments.py of 2021 to 2026 means to a step, with what
// Megatron-DeepSpeed, BigScience's fork and Pai-Megatron-Patch add. A new argument is one more word
// in one of the groups; "--name=0|none" is refused unless it has one of these values.
#include "app/import/job/megatron/megatron_arguments.h"

#include <map>

namespace tessera {
namespace {

struct Group {
  ArgumentUse use;
  std::string_view why;
  std::string_view names;
};

constexpr auto kRead = ArgumentUse::read;
constexpr auto kHarmlessArgument = ArgumentUse::harmless;
constexpr auto kRefused = ArgumentUse::refused;

constexpr Group kArguments[] = {
    {kRead, "model",
     "--num-layers --encoder-num-layers --hidden-size --num-attention-heads --ffn-hidden-size "
     "--kv-channels --group-query-attention --num-query-groups --num-key-value-heads "
     "--seq-length --encoder-seq-length --max-position-embeddings --position-embedding-type "
     "--use-rotary-position-embeddings --no-position-embedding --normalization --use-rmsnorm "
     "--swiglu --glu-activation --quick-geglu --squared-relu --disable-bias-linear "
     "--add-bias-linear --add-qkv-bias --qk-layernorm --qk-l2-norm --embed-layernorm "
     "--untie-embeddings-and-output-weights --hidden-dropout --attention-dropout "
     "--rotary-percent --vocab-size --padded-vocab-size --pad-vocab-size-to "
     "--make-vocab-size-divisible-by --extra-vocab-size --tokenizer-type --tokenizer-model "
     "--tokenizer-name-or-path --patch-tokenizer-type --spec --is-hybrid-model "
     "--hybrid-override-pattern --mamba-state-dim --mamba-head-dim --mamba-num-groups "
     "--mamba-num-heads --no-rope-freq --activation-func-clamp-value --glu-linear-offset"},
    {kRead, "experts",
     "--num-experts --moe-ffn-hidden-size --moe-router-topk --moe-expert-capacity-factor "
     "--moe-router-load-balancing-type "
     "--moe-pad-expert-input-to-capacity --moe-token-dispatcher-type --moe-grouped-gemm "
     "--moe-permute-fusion "
     "--expert-model-parallel-size --moe-expert-parallel-size --expert-tensor-parallel-size "
     "--topk --expert-interval --moe-layer-freq --moe-train-capacity-factor --mlp-type "
     "--moe-router-dtype --moe-router-padding-for-fp8 --moe-router-padding-for-quantization "
     "--moe-shared-expert-overlap"},
    {kRead, "precision and memory",
     "--fp16 --bf16 --fp8-format --fp8-hybrid --fp8-e4m3 --fp8-recipe --fp4-format --fp4-recipe "
     "--accumulate-allreduce-grads-in-fp32 --grad-reduce-in-bf16 "
     "--use-precision-aware-optimizer --main-grads-dtype --main-params-dtype --exp-avg-dtype "
     "--exp-avg-sq-dtype --recompute-activations --recompute-granularity --recompute-method "
     "--recompute-num-layers --recompute-modules --checkpoint-activations --fp8-param-gather "
     "--cpu-offloading --cpu-offloading-num-layers --checkpoint-num-layers "
     "--activations-checkpoint-method --activations-checkpoint-num-layers "
     "--no-create-attention-mask-in-dataloader "
     "--empty-unused-memory-level"},
    {kRead, "parallelism",
     "--tensor-model-parallel-size --model-parallel-size --pipeline-model-parallel-size "
     "--context-parallel-size --cp-comm-type --ds-sequence-parallel-size "
     "--force-ds-sequence-parallel --sequence-parallel --num-layers-per-virtual-pipeline-stage "
     "--num-virtual-stages-per-pipeline-rank --decoder-first-pipeline-num-layers "
     "--decoder-last-pipeline-num-layers --account-for-embedding-in-pipeline-split "
     "--account-for-loss-in-pipeline-split --pipeline-model-parallel-layout "
     "--pp-partition-method --no-pipeline-parallel --use-tp-pp-dp-mapping "
     "--microbatch-group-size-per-virtual-pipeline-stage --world-size"},
    {kRead, "batch and optimizer",
     "--micro-batch-size --batch-size --global-batch-size --rampup-batch-size --optimizer "
     "--muon-num-ns-steps --muon-tp-mode --muon-fp32-matmul-prec "
     "--use-layer-wise-distributed-optimizer "
     "--clip-grad --use-distributed-optimizer --num-distributed-optimizer-instances "
     "--use-megatron-fsdp --use-custom-fsdp --data-parallel-sharding-strategy --zero-stage "
     "--overlap-grad-reduce --delay-grad-reduce --no-delay-grad-reduce --align-grad-reduce "
     "--no-align-grad-reduce --overlap-param-gather --delay-param-gather --align-param-gather "
     "--ddp-bucket-size --DDP-impl"},
    {kRead, "kernels and generation",
     "--transformer-impl --use-flash-attn --use-flash-attn-v1 --use-flash-attn-v2 "
     "--use-flash-attn-triton --attention-backend --no-masked-softmax-fusion "
     "--no-gradient-accumulation-fusion --no-rope-fusion --no-bias-swiglu-fusion "
     "--no-async-tensor-model-parallel-allreduce --tp-comm-overlap "
     "--no-overlap-p2p-communication --use-legacy-models --use-mcore-models --deepspeed "
     "--deepspeed_config --deepspeed-config --deterministic-mode --enable-cuda-graph "
     "--external-cuda-graph --cuda-graph-impl --cuda-graph-scope"},
    {kHarmlessArgument, "learning rate, loss, regularization: numbers alone",
     "--lr --min-lr --lr-decay-style --lr-decay-iters --lr-decay-samples --lr-decay-tokens "
     "--lr-warmup-fraction --lr-warmup-iters --lr-warmup-samples --lr-warmup-tokens "
     "--lr-warmup-init --lr-wsd-decay-style --lr-wsd-decay-iters --lr-wsd-decay-samples "
     "--warmup --override-lr-scheduler --override-opt_param-scheduler "
     "--override-opt-param-scheduler --use-checkpoint-lr-scheduler "
     "--use-checkpoint-opt_param-scheduler --use-checkpoint-opt-param-scheduler --decoupled-lr "
     "--decoupled-min-lr --weight-decay --start-weight-decay --end-weight-decay "
     "--weight-decay-incr-style --apply-wd-to-qk-layernorm --adam-beta1 --adam-beta2 --adam-eps "
     "--sgd-momentum --muon-momentum --muon-scale-mode --muon-use-nesterov "
     "--muon-extra-scale-factor --loss-scale --initial-loss-scale --min-loss-scale "
     "--loss-scale-window "
     "--hysteresis --init-method-std --init-method-xavier-uniform --embedding-init-method-std "
     "--layernorm-epsilon --norm-epsilon --rms-norm-eps --seed --data-parallel-random-init "
     "--moe-aux-loss-coeff --moe-z-loss-coeff --moe-loss-coeff --moe-router-bias-update-rate "
     "--moe-router-topk-scaling-factor --moe-min-capacity "
     "--moe-eval-capacity-factor --apply-query-key-layer-scaling --no-query-key-layer-scaling "
     "--attention-softmax-in-fp32 --no-scaled-init --use-scaled-init-method --rotary-base "
     "--rotary-seq-len-interpolation-factor --use-rope-scaling --rope-scaling-factor "
     "--rotary-scaling-factor --mscale --mscale-all-dim --beta-fast --beta-slow "
     "--original-max-position-embeddings --rope-theta --rotary-interleaved --softmax-scale "
     "--max-padding-length --eod-mask-loss --reset-position-ids"},
    {kHarmlessArgument, "how long the run is, what is read and written beside its steps",
     "--train-iters --train-samples --train-tokens --exit-interval --exit-duration-in-mins "
     "--exit-signal-handler --exit-signal --iterations-to-skip --skip-train-iteration-range "
     "--eval-iters --eval-interval --full-validation --multiple-validation-sets --skip-train "
     "--test-mode --save --save-interval --save-retain-interval --persistent-save-interval "
     "--load --finetune --pretrained-checkpoint --pretrained-model-path --ckpt-step "
     "--ckpt-format --ckpt-convert-format --ckpt-convert-save --ckpt-fully-parallel-save "
     "--ckpt-fully-parallel-load --no-ckpt-fully-parallel-save "
     "--ckpt-assume-constant-structure --async-save --use-persistent-ckpt-worker "
     "--use-dist-ckpt --use-dist-ckpt-deprecated --dist-ckpt-format --dist-ckpt-strictness "
     "--dist-ckpt-optim-fully-reshardable --auto-detect-ckpt-format --no-save-optim "
     "--no-save-rng --no-load-optim --no-load-rng --no-load-lr-state --no-initialization "
     "--no-perform-initialization --perform-initialization --use-checkpoint-args "
     "--no-use-checkpoint-args --exit-on-missing-checkpoint --load-main-params-from-ckpt "
     "--no-load-checkpoint-args --non-persistent-save-interval --non-persistent-ckpt-type "
     "--non-persistent-global-ckpt-dir --non-persistent-local-ckpt-dir "
     "--non-persistent-local-ckpt-algo --replication --replication-jump --replication-factor "
     "--universal-checkpoint --adlr-autoresume --adlr-autoresume-interval "
     "--inference-batch-times-seqlen-threshold"},
    {kHarmlessArgument, "data and tokenizers: read ahead of the step",
     "--data-path --train-data-path --valid-data-path --test-data-path --data-args-path "
     "--per-split-data-args-path --data-cache-path --data-impl --data-parallel-random-data "
     "--split --mock-data --no-mmap-bin-files --mmap-warmup --object-storage-cache-path "
     "--vocab-file --vocab-extra-ids --merge-file --num-workers --dataloader-type "
     "--no-data-sharding --num-dataset-builder-threads --s3-cache-path "
     "--mid-level-dataset-surplus --allow-ambiguous-pad-tokens --fim-data --fim-rate "
     "--fim-spm-rate --fim-split-sample --tiktoken-pattern --tiktoken-num-special-tokens "
     "--tiktoken-special-tokens --tokenizer-prompt-format --tokenizer-special-tokens "
     "--trust-remote-code --dataset --dataset-name --train-dataset --epochs --shuffle "
     "--train-weighted-split-paths --train-weighted-split-paths-path "
     "--valid-weighted-split-paths --valid-weighted-split-paths-path "
     "--test-weighted-split-paths --test-weighted-split-paths-path --valid-num-workers "
     "--create-attention-mask-in-dataloader --sft-tokenizer-prompt-format "
     "--train-data-exact-num-epochs --legacy-tokenizer"},
    {kHarmlessArgument, "logging, profiling on request, checks",
     "--log-interval --log-params-norm --log-num-zeros-in-grad --log-throughput --log-progress "
     "--log-energy --log-memory-to-tensorboard --log-world-size-to-tensorboard "
     "--log-timers-to-tensorboard --log-validation-ppl-to-tensorboard "
     "--log-learning-rate-to-tensorboard --log-loss-scale-to-tensorboard "
     "--no-log-learnig-rate-to-tensorboard --no-log-learning-rate-to-tensorboard "
     "--no-log-loss-scale-to-tensorboard --log-batch-size-to-tensorboard "
     "--log-optimizer-states-to-tensorboard --log-straggler --log-memory-interval "
     "--log-max-attention-logit --logging-level --moe-per-layer-logging --tensorboard-dir "
     "--tensorboard-log-interval --tensorboard-queue-size --tensorboard-profile "
     "--timing-log-level --timing-log-option --no-barrier-with-level-1-timing "
     "--barrier-with-L1-time --wandb-project --wandb-exp-name --wandb-entity --wandb-save-dir "
     "--wandb-logger --profile --profile-step-start --profile-step-end --profile-ranks "
     "--use-pytorch-profiler --record-memory-history --memory-snapshot-path "
     "--one-logger-project --one-logger-run-name --one-logger-async --no-one-logger "
     "--enable-one-logger --app-tag-run-name --app-tag-run-version --config-logger-dir "
     "--straggler-ctrlr-port --straggler-minmax-count --check-for-nan-in-loss-and-grad "
     "--no-check-for-nan-in-loss-and-grad --check-for-large-grads "
     "--check-weight-hash-across-dp-replicas-interval --enable-ft-package "
     "--run-workload-inspector-server --inprocess-restart --rerun-mode --error-injection-rate "
     "--error-injection-type --result-rejected-tracker-filename --enable-gloo-process-groups "
     "--disable-gloo-process-groups --codecarbon-dir --kill-switch-path "
     "--abort-on-unmet-fused-kernel-constraints --te-rng-tracker --inference-rng-tracker"},
    {kHarmlessArgument, "start of the job, and switches that say the default",
     "--distributed-backend --distributed-timeout-minutes "
     "--distributed-timeout-seconds-after-init --local_rank --local-rank --lazy-mpu-init "
     "--nccl-communicator-config-path --use-cpu-initialization --use-device-initialization "
     "--init-model-with-meta-device --manual-gc --manual-gc-interval --no-manual-gc-eval "
     "--tp-comm-bootstrap-backend --overlap-p2p-communication --masked-softmax-fusion "
     "--bias-gelu-fusion --bias-swiglu-fusion --bias-dropout-fusion --rope-fusion "
     "--gradient-accumulation-fusion --async-tensor-model-parallel-allreduce "
     "--scatter-gather-tensors-in-pipeline --no-persist-layer-norm --apply-layernorm-1p "
     "--fp8-margin --fp8-interval --fp8-amax-history-len --fp8-amax-compute-algo --fp8-wgrad "
     "--ddp-pad-buckets-for-high-nccl-busbw --calculate-per-token-loss "
     "--moe-router-pre-softmax --moe-router-score-function --deepspeed-activation-checkpointing "
     "--deepscale --deepscale_config --deepspeed_mpi --create-moe-param-group "
     "--use-one-sent-docs --mem-efficient-ln --moe-router-force-load-balancing "
     "--mtp-loss-scaling-factor --cuda-graph-warmup-steps --cuda-graph-use-single-mempool "
     "--cuda-graph-retain-backward-graph"},
    {kRefused, "latent attention is not simulated",
     "--multi-latent-attention --q-lora-rank --kv-lora-rank --qk-head-dim "
     "--qk-pos-emb-head-dim --v-head-dim --rope-type=rope --cache-mla-latents"},
    {kRefused, "shared experts are not simulated",
     "--moe-shared-expert-intermediate-size=0|none --moe-shared-expert-gate "
     "--enable-shared-expert"},
    {kRefused, "attention within windows is not simulated",
     "--window-size=none|-1,-1 --window-attn-skip-freq=none|1 --chunked-attention-size"},
    {kRefused, "layers other than attention and feed-forward are not simulated",
     "--hybrid-attention-ratio=0|0.0 --hybrid-mlp-ratio=0|0.0 "
     "--heterogeneous-layers-config-path --heterogeneous-layers-config-encoded-json "
     "--linear-attention-type=none --linear-attention-freq=none --linear-conv-kernel-dim "
     "--linear-key-head-dim --linear-value-head-dim --linear-num-key-heads "
     "--linear-num-value-heads --experimental-attention-variant=none --dsa-indexer-n-heads "
     "--dsa-indexer-head-dim --dsa-indexer-topk --dsa-indexer-loss-coeff "
     "--dsa-indexer-use-sparse-loss --attention-output-gate"},
    {kRefused, "vision towers are not simulated",
     "--img-h --img-w --num-channels --num-classes --patch-dim --vision-pretraining "
     "--vision-pretraining-type --vision-backbone-type --swin-backbone-type --mask-type "
     "--mask-factor --iter-per-epoch --head-lr-mult --classes-fraction "
     "--data-per-class-fraction --language-model-type --freeze-ViT --freeze-LM --use-tiling "
     "--disable-vision-class-token --max-num-tiles --dino-local-img-size "
     "--dino-local-crops-number --dino-head-hidden-size --dino-bottleneck-size "
     "--dino-freeze-last-layer --dino-norm-last-layer --dino-warmup-teacher-temp "
     "--dino-teacher-temp --dino-warmup-teacher-temp-epochs"},
    {kRefused, "layers that predict further tokens are not simulated", "--mtp-num-layers=0|none "},
    {kRefused, "encoders and retrieval are not simulated",
     "--decoder-num-layers --decoder-seq-length --encoder-tensor-model-parallel-size=0 "
     "--encoder-pipeline-model-parallel-size=0 --pipeline-model-parallel-split-rank "
     "--standalone-embedding-stage --bert-no-binary-head --bert-load --bert-embedder-type "
     "--short-seq-prob --mask-prob --retro-add-retriever --retro-project-dir "
     "--retro-cyclic-train-iters --retro-encoder-layers --retro-encoder-hidden-dropout "
     "--retro-encoder-attention-dropout --retro-num-neighbors --retro-num-retrieved-chunks "
     "--retro-attention-gate --retro-no-verify-neighbor-count --ict-head-size "
     "--biencoder-projection-dim --biencoder-shared-query-context-model --ict-load "
     "--titles-data-path --query-in-block-prob --evidence-data-path "
     "--retriever-report-topk-accuracies --retriever-score-scaling --retriever-seq-length "
     "--block-data-path --embedding-path --indexer-batch-size --indexer-log-interval "
     "--num-layers-teacher --hidden-size-teacher --num-attention-heads-teacher "
     "--num-experts-teacher --load-teacher --kd --mos --kd-alpha-ce --kd-beta-ce --kd-temp"},
    {kRefused, "layers of another make than those of GPT-2 and Llama are not simulated",
     "--apply-residual-connection-post-layernorm --openai-gelu --onnx-safe "
     "--fp32-residual-connection --use-tutel --attention-head-type=multihead "
     "--softmax-type=vanilla --qk-clip --qk-clip-alpha --qk-clip-threshold --moe-latent-size "
     "--relative-attention-num-buckets --relative-attention-max-distance"},
    {kRefused, "the products and kernels that it chooses are not simulated",
     "--no-bias-gelu-fusion --no-bias-dropout-fusion --cross-entropy-loss-fusion "
     "--cross-entropy-fusion-impl --fp16-lm-cross-entropy --fp32-lm-head --reset-attention-mask "
     "--use-te-activation-func --use-kitchen --use-kitchen-attention --kitchen-config-file "
     "--kitchen-recipe-number --use-fused-weighted-squared-relu --fallback-to-eager-attn "
     "--moe-router-fusion --moe-apply-probs-on-input --moe-extended-tp --moe-use-upcycling "
     "--moe-upcycling-granularity --moe-input-jitter-eps=none --moe-router-enable-expert-bias "
     "--moe-router-num-groups=none|1 --moe-router-group-topk=none|1 "
     "--moe-token-drop-policy=probs --moe-hybridep-num-sms=16|none --moe-enable-deepep "
     "--moe-deepep-num-sms=20|none --moe-flex-dispatcher-backend --batch-invariant-mode "
     "--use-inference-optimized-layers --symmetric-ar-type=none --gradient-reduce-div-fusion "
     "--no-gradient-reduce-div-fusion --disable-jit-fuser --disable-moe-token-dropping "
     "--enable-expert-tensor-parallelism --disable-moe-top2-2nd-expert-sampling "
     "--use-fused-rmsnorm --moe-use-legacy-grouped-gemm"},
    {kRefused, "numbers of other formats are not simulated",
     "--fp4-param --fp4-quantizer-factory --no-fp8-wgrad --fp8-quantizer-factory "
     "--first-last-layers-bf16 --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 "
     "--store-param-remainders --reuse-grad-buf-for-mxfp8-param-ag --fp8-dot-product-attention "
     "--fp8-multi-head-attention --te-precision-config-file --megatron-fsdp-main-params-dtype "
     "--megatron-fsdp-main-grads-dtype --megatron-fsdp-grad-comm-dtype --fp32-allreduce "
     "--decrease-batch-size-if-needed"},
    {kRefused, "copies to host memory are not simulated",
     "--cpu-offload --cpu-optimizer --cpu_torch_adam --optimizer-cpu-offload "
     "--optimizer-offload-fraction --use-torch-optimizer-for-cpu-offload "
     "--overlap-cpu-optimizer-d2h-h2d --no-pin-cpu-grads --no-pin-cpu-params "
     "--checkpoint-in-cpu --fine-grained-activation-offloading --offload-modules "
     "--remote-device=none"},
    {kRefused, "activations are kept or made again in other ways than a scenario knows",
     "--distribute-saved-activations --distribute-checkpointed-activations "
     "--partition-activations --contigious-checkpointing --profile-activations "
     "--synchronize-each-layer --split-transformers --memory-centric-tiled-linear "
     "--tile-factor --scattered-embeddings"},
    {kRefused, "the order of communication and computation that it asks for is not simulated",
     "--overlap-param-gather-with-optimizer-step --overlap-moe-expert-parallel-comm "
     "--delay-wgrad-compute --overlap-p2p-communication-warmup-flush "
     "--defer-embedding-wgrad-compute --wgrad-deferral-limit=0 --use-ring-exchange-p2p "
     "--no-scatter-gather-tensors-in-pipeline --no-contiguous-buffers-in-local-ddp "
     "--ddp-num-buckets --ddp-average-in-collective --tp-comm-overlap-cfg "
     "--tp-comm-overlap-rs-dgrad --tp-comm-overlap-disable-qkv --tp-comm-overlap-disable-fc1 "
     "--disable-tp-comm-overlap-ag --disable-tp-comm-overlap-rs --disable-tp-comm-bulk-dgrad "
     "--disable-tp-comm-bulk-wgrad --disable-tp-comm-split-ag --disable-tp-comm-split-rs "
     "--hierarchical-context-parallel-sizes --hybrid-context-parallel "
     "--max-seqlen-per-dp-cp-rank --use-sharp --high-priority-stream-groups --use-nccl-ub "
     "--nccl-ub --fsdp-manual-registration --use-torch-fsdp2 "
     "--torch-fsdp2-no-reshard-after-forward --fsdp-double-buffer "
     "--suggested-communication-unit-size --outer-dp-sharding-strategy=no_shard "
     "--zero-allgather-bucket-size --zero-reduce-bucket-size --zero-contigious-gradients "
     "--enable-zbh1-pipeline --enable-zbh1-exact-semantics --enable-zbh-pipeline "
     "--zero-bubble-v-schedule --zero-bubble-max-pending-backward "
     "--enable-optimizer-post-validation"},
    {kRefused, "graphs of launches are not simulated", "--optimizer-cuda-graph"},
    {kRefused, "sequences and batches that change are not simulated",
     "--variable-seq-lengths --use-packed-sequences --packing-sft-data --sft-sequence-packing "
     "--curriculum-learning-legacy --data-efficiency-curriculum-learning --random-ltd "
     "--train-doc-idx-path --train-sample-idx-path --train-shuffle-idx-path --train-idx-path "
     "--train-desc-path --sft"},
    {kRefused, "optimizer steps of this kind are not simulated", "--muon-split-qkv"},
    {kRefused, "training of parts of a model is not simulated",
     "--export-te-mcore-model --export-quant-cfg --export-kd-teacher-load --export-kd-cfg "
     "--export-kd-finalize --export-legacy-megatron --modelopt-enabled --compression-training"},
    {kRefused, "this is no pretraining step: it evaluates, generates or converts",
     "--task --valid-data --overlapping-eval --strict-lambada --genfile --top_p --top_k "
     "--temperature --greedy --out-seq-length --sample-input-file --sample-output-file "
     "--num-samples --recompute --port --max-tokens-to-oom --inference-max-requests "
     "--inference-max-batch-size --inference-max-seq-length --inference-dynamic-batching "
     "--output-bert-embeddings --enable-chunked-prefill --return-log-probs --prompts "
     "--num-tokens-to-generate --perform-rl-step --rl-prompts-per-eval --grpo-kl-beta "
     "--grpo-iterations --grpo-group-size --grpo-prompts-per-step --grpo-clamp-eps-lower "
     "--grpo-clamp-eps-upper --langrl-env-config --target-tensor-model-parallel-size "
     "--target-pipeline-model-parallel-size"},
};

constexpr Group kLaunchers[] = {
    {kRead, "size of the job",
     "--nnodes --nproc_per_node --nproc-per-node --num_nodes --num_gpus --num-nodes --num-gpus "
     "--nodes --ntasks --ntasks-per-node --gpus-per-node --gpus --gres -N -n -np --np"},
    {kHarmlessArgument, "where and how processes start",
     "--node_rank --node-rank --master_addr --master-addr --master_port --master-port "
     "--rdzv_id --rdzv-id --rdzv_backend --rdzv-backend --rdzv_endpoint --rdzv-endpoint "
     "--rdzv_conf --rdzv-conf --max_restarts --max-restarts --monitor_interval "
     "--monitor-interval --standalone --start_method --start-method --role --tee --redirects "
     "--log_dir --log-dir --local_addr --local-addr --local-ranks-filter --logs-specs "
     "--use_env --use-env --no_python --no-python --run_path --run-path --module --hostfile "
     "--include --exclude --launcher --launcher_args --force_multi --no_local_rank --no_ssh "
     "--no_ssh_check --bind_cores_to_rank --bind_core_list --ssh_port --elastic_training "
     "--enable_each_rank_log --save_pid --autotuning --venv_script --jobid --output --error "
     "--label --kill-on-bad-exit --container-image --container-mounts --container-name "
     "--container-workdir --no-container-mount-home --container-writable --container-env --mpi "
     "--cpu-bind --cpus-per-task --gpu-bind --gpus-per-task --mem --mem-per-cpu --mem-per-gpu "
     "--mem-bind --exclusive --export --wait --time --account --partition --job-name "
     "--distribution --unbuffered --threads-per-core --hint --network --nodelist --overlap "
     "--multi-prog --allow-run-as-root --bind-to --map-by --host --mca --oversubscribe "
     "--tag-output --hosts --rankfile --prefix --report-bindings --timestamp-output --rank-by "
     "--gpu --ipc --shm-size --ulimit --net --rm --privileged --volume --env --workdir --name "
     "--user --trace --sample --cuda-memory-usage --capture-range --capture-range-end "
     "--force-overwrite --stats --membind --cpunodebind --interleave --constraint --open-mode "
     "--comment --dependency --requeue --chdir --signal --reservation --qos"},
};

/// The words of a table as arguments: "--name=0|none" has neutral values.
void add(const Group& group, std::vector<KnownArgument>& all) {
  std::string_view rest = group.names;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view neutral = word.substr(std::min(equals + 1, word.size()));
    if (!word.empty()) all.push_back({word.substr(0, equals), group.use, group.why, neutral});
  }
}

template <std::size_t size>
std::vector<KnownArgument> table_of(const Group (&groups)[size]) {
  std::vector<KnownArgument> all;
  for (const Group& group : groups) add(group, all);
  return all;
}

using ByName = std::map<std::string_view, const KnownArgument*>;

ByName by_name(const std::vector<KnownArgument>& arguments) {
  ByName names;
  for (const KnownArgument& argument : arguments) names.emplace(argument.name, &argument);
  return names;
}

const KnownArgument* found(const ByName& names, std::string_view name) {
  const auto place = names.find(name);
  return place == names.end() ? nullptr : place->second;
}

}  // namespace

const std::vector<KnownArgument>& megatron_arguments() {
  static const std::vector<KnownArgument> all = table_of(kArguments);
  return all;
}

const std::vector<KnownArgument>& launcher_options() {
  static const std::vector<KnownArgument> all = table_of(kLaunchers);
  return all;
}

const KnownArgument* megatron_argument(std::string_view name) {
  static const ByName names = by_name(megatron_arguments());
  return found(names, name);
}

const KnownArgument* launcher_option(std::string_view name) {
  static const ByName names = by_name(launcher_options());
  return found(names, name);
}

}  // namespace tessera

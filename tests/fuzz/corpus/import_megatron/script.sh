#!/bin/bash
# Trains a model of 20B parameters.
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"4"}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DATA_PATH=$1
TP=4
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES   # of the job
)
GPT_MODEL_ARGS=(
    --num-layers 44 --hidden-size 6144 --num-attention-heads 48
    --seq-length 2048 --max-position-embeddings 2048
)
TRAINING_ARGS="--micro-batch-size 1 \
    --global-batch-size $((WORLD_SIZE * 8)) --lr 6.0e-5 --bf16 --clip-grad 1.0"
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size=4 --sequence-parallel)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py "${GPT_MODEL_ARGS[@]}" $TRAINING_ARGS ${MODEL_PARALLEL_ARGS[@]} \
    --data-path "$DATA_PATH" --use-distributed-optimizer --recompute-activations

#!/bin/bash
MODEL=${MODEL:-small}
if [ "$MODEL" = small ]; then
  LAYERS=12; HIDDEN=768; HEADS=12
elif [ "$MODEL" = large ]; then
  LAYERS=36; HIDDEN=1280; HEADS=20
else
  exit 1
fi
ARGS="--num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS --seq-length 1024"
for i in 1 2; do echo $i; done
python -m torch.distributed.launch --nproc_per_node=8 pretrain_gpt.py $ARGS --micro-batch-size 4 \
  --global-batch-size $((8 * 4)) --max-position-embeddings 1024 --fp16 "$@"

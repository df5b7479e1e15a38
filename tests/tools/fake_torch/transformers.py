"""Stands in for Hugging Face transformers in tests of tools/collect: models whose backward pass takes a millisecond."""

import time


class Config:
    def __init__(self, **fields):
        assert fields["attn_implementation"] == "eager"


GPT2Config = BertConfig = Config


class Loss:
    def backward(self):
        time.sleep(1e-3)


class Output:
    loss = Loss()


class Model:
    def __init__(self, config):
        self.config = config

    def cuda(self):
        return self

    def train(self):
        return self

    def parameters(self):
        return []

    def __call__(self, **_batch):
        return Output()


GPT2LMHeadModel = BertForPreTraining = Model

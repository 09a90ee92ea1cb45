"""Text generation, one token a step: with generate(), and with a captured graph."""

import torch


def generate_loop(run, model, prompt, new_tokens):
    """The loop is generate() again and again; its steps are tokens, the first of each call with
    the prompt. The referee's steps are told apart by a hook before each forward pass."""
    model.eval()
    mask = torch.ones_like(prompt)

    def call(tokens):
        with torch.no_grad():
            model.generate(
                input_ids=prompt, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0
            )

    call(4)
    with run.measured(warm=new_tokens):
        go_on = True
        while go_on:
            call(new_tokens)
            go_on = run.tick(new_tokens)
    with run.profiled(8) as wanted:
        if wanted:
            inner = model.get_base_model() if hasattr(model, "get_base_model") else model
            hook = inner.register_forward_pre_hook(lambda *_: run.mark())
            call(wanted)
            hook.remove()


class GraphedDecoder:
    """Greedy decoding over a static cache: a token is one replay, and none is read back."""

    def __init__(self, run, model, prompt, room, capture=True):
        from transformers import StaticCache

        self.run, self.model, self.prompt, self.graph = run, model.eval(), prompt, None
        self.cache = StaticCache(config=model.config, max_cache_len=prompt.shape[1] + room)
        self.token = torch.zeros(1, 1, dtype=torch.long, device=run.device)
        self.position = torch.zeros(1, 1, dtype=torch.long, device=run.device)
        self.slots = torch.arange(prompt.shape[1] + room, device=run.device)
        with torch.no_grad():
            self.restart()
            if run.cpu or not capture:
                return
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.advance()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.advance()
            self.graph = graph

    def restart(self):
        length = self.prompt.shape[1]
        for layer in self.cache.layers:
            layer.cumulative_length.zero_()
        with torch.no_grad():
            places = torch.arange(length, device=self.run.device)[None]
            mask = (self.slots[None, :] <= places[0][:, None])[None, None]
            out = self.model(input_ids=self.prompt, position_ids=places, attention_mask=mask, past_key_values=self.cache, use_cache=True)
            self.token.copy_(out.logits[:, -1:].argmax(-1))
            self.position.fill_(length)

    def advance(self):
        mask = (self.slots <= self.position[0])[None, None, None]
        out = self.model(
            input_ids=self.token, position_ids=self.position, attention_mask=mask, past_key_values=self.cache, use_cache=True
        )
        self.token.copy_(out.logits[:, -1:].argmax(-1))
        self.position.add_(1)

    def step(self):
        if self.graph:
            self.graph.replay()
            return
        with torch.no_grad():
            self.advance()


def graphed_loop(run, model, prompt, new_tokens):
    decoder = GraphedDecoder(run, model, prompt, new_tokens + 64)

    def step(i):
        if i % new_tokens == 0:
            decoder.restart()
        decoder.step()

    run.loop(step, warm=new_tokens)

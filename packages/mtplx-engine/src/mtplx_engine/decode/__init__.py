"""From logits to tokens: sampling, drafting, judging drafts, stopping."""

"""The policy language: text in, compiled policy out; facts in, judgement out. Pure code without Django and without I/O."""

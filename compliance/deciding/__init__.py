"""May this subject do this to that system, now? Pure: what was read goes in, the answer with its reasons comes out."""

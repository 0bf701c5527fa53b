"""Dossiers: the canonical documents that signers sign. Built from what stands at the moment of asking; one module a kind of request."""

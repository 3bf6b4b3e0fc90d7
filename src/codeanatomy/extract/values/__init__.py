"""The layer `values`: what names are bound to, and the questions that are left to the resolver; built on the others."""

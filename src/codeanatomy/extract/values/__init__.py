"""The layer `values`: what names can hold, and the questions that are left; the last to build on the others."""

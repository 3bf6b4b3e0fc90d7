"""The analysed repository as it lies on disk: which files, which contents, which module names."""

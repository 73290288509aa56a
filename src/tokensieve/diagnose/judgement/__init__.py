"""What measurements mean: agreement with the data, support, artefacts, skill."""

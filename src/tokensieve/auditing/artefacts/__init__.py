"""Whether a word that predicts a class is an artefact or its subject: one measured score."""
